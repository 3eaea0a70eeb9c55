"""radocraft identity init|issue|show|adopt|revoke|rotate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from radocraft.cli._outputs import Force, check_outputs
from radocraft.cli._terminal import Json, out, print_json
from radocraft.net import Identity, adopt, init_authority, issue, revoke, rotate

app = typer.Typer(help="Who you are on the network: certificates and tokens.", no_args_is_help=True)

Authority = Annotated[Path, typer.Argument(help="The folder of the authority.")]
Who = Annotated[str, typer.Argument(metavar="NAME", help="The peer's name in the contract, or the collector's.")]
Folder = Annotated[
    Path, typer.Option("--output", "-o", help="The folder of the identity; hand it over by a secure channel.")
]
Days = Annotated[int, typer.Option(min=1, help="Validity in days.")]


@app.command()
def init(
    folder: Authority,
    name: Annotated[str, typer.Option(help="The authority's name.")] = "radocraft trial",
    days: Days = 3650,
    as_json: Json = False,
) -> None:
    """Make a small private certificate authority, for trials and groups that have none.

    Example: radocraft identity init authority
    """
    made = init_authority(folder, name, days)
    if as_json:
        print_json({"authority": str(made)})
    else:
        out.print(f"Made {made}. Keep authority.key to yourself. Next: radocraft identity issue {made} NAME -o NAME")


@app.command("issue")
def issue_one(
    authority: Authority,
    name: Who,
    output: Folder,
    days: Days = 365,
    trust: Annotated[list[str] | None, typer.Option(help="Who may ask it; written into its members.toml.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Issue a certificate and a token to a peer or a collector.

    Example: radocraft identity issue authority bank -o bank-identity --trust collector
    """
    check_outputs([output / "certificate.pem"] if output.is_dir() else [], [], force=force)
    _print(issue(authority, name, output, days=days, trust=tuple(trust or ())), as_json, "Issued")


@app.command("adopt")
def adopt_one(
    certificate: Annotated[Path, typer.Option(help="Your certificate, PEM, with one DNS name.")],
    key: Annotated[Path, typer.Option(help="Its private key, PEM.")],
    authority: Annotated[Path, typer.Option(help="The company's authority, PEM.")],
    output: Folder,
    as_json: Json = False,
) -> None:
    """Make an identity of a certificate of your company's own authority.

    Example: radocraft identity adopt --certificate bank.pem --key bank.key --authority corp.pem -o bank-identity
    """
    identity = adopt(certificate, key, authority, output)
    _print(identity, as_json, "Made")
    if not as_json:
        out.print("Whoever it talks to adds this to their members.toml:")
        out.print(f'["{identity.name}"]\ntoken = "sha256:{identity.token_digest}"')


@app.command()
def show(folder: Annotated[Path, typer.Argument(help="The folder of an identity.")], as_json: Json = False) -> None:
    """Say who an identity is, until when, and whom it talks to.

    Example: radocraft identity show bank-identity
    """
    _print(Identity.load(folder), as_json, "")


@app.command("revoke")
def revoke_all(authority: Authority, name: Who, as_json: Json = False) -> None:
    """Revoke every certificate of a name; then hand out the new revoked.pem.

    Example: radocraft identity revoke authority bank
    """
    serials = revoke(authority, name)
    if as_json:
        print_json({"revoked": [f"{serial:x}" for serial in serials]})
    else:
        out.print(
            f"Revoked {len(serials)} of {name}. Copy {authority / 'revoked.pem'} into everybody's folder: "
            "running services read it at once."
        )


@app.command("rotate")
def rotate_one(authority: Authority, name: Who, output: Folder, days: Days = 365, as_json: Json = False) -> None:
    """Issue a new certificate and token to a name and revoke those it had.

    Example: radocraft identity rotate authority bank -o bank-identity
    """
    _print(rotate(authority, name, output, days=days), as_json, "Issued")
    if not as_json:
        out.print(f"The old ones are revoked: copy {authority / 'revoked.pem'} into everybody's folder.")


def _print(identity: Identity, as_json: bool, done: str) -> None:
    facts: dict[str, Any] = {
        "name": identity.name,
        "folder": str(identity.folder),
        "serial": f"{identity.certificate.serial_number:x}",
        "issuer": identity.certificate.issuer.rfc4514_string(),
        "until": identity.certificate.not_valid_after_utc.isoformat(),
        "members": sorted(identity.members()),
    }
    if as_json:
        print_json(facts)
        return
    grid = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        grid.add_row(name, ", ".join(value) if isinstance(value, list) else value)
    if done:
        out.print(f"{done}:")
    out.print(grid)
