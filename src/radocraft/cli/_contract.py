"""radocraft contract new|check|show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._outputs import Force, Output, check_outputs
from radocraft.cli._terminal import Json, err, out, print_json, print_mistakes
from radocraft.contract import Contract, Profile, check_contract, describe_contract, draft_contract
from radocraft.errors import ContractError
from radocraft.files import writing
from radocraft.rows import profile

app = typer.Typer(help="Draft, check and explain the contract between the peers.", no_args_is_help=True)


@app.command()
def new(
    peers: Annotated[list[str], typer.Argument(help="One PEER=FILE each: a profile (JSON), or the table itself.")],
    name: Annotated[str, typer.Option(help="What the contract is about.")],
    label: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="The column to predict; again as PEER=COLUMN where its name is no help."),
    ],
    positive: Annotated[str | None, typer.Option(help="Its value to predict.")] = None,
    negative: Annotated[str | None, typer.Option(help="Its other value.")] = None,
    columns: Annotated[bool, typer.Option("--columns", help="Sum each peer's columns instead of one score.")] = False,
    output: Output = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draft a contract from what each peer may tell: one score per peer, of all its columns.

    Example: radocraft contract new bank=bank.profile.json insurer=insurer.profile.json
    --name "default within a year" --label defaulted --positive yes --negative no -o contract.toml
    """
    check_outputs([output], [entry.partition("=")[2] for entry in peers], force=force)
    profiles = {}
    for entry in peers:
        peer, equals, path = entry.partition("=")
        if not (peer and equals and path):
            raise typer.BadParameter(f"'{entry}' is not of the form PEER=FILE, e.g. bank=bank.profile.json")
        if peer in profiles:
            raise typer.BadParameter(f"'{peer}' is given twice; give each peer one file")
        profiles[peer] = Profile.load(path) if path.endswith(".json") else profile(path, outline=True)
    plain = [column for column in label if column.partition("=")[0] not in profiles] or [label[0].partition("=")[2]]
    named = {peer: column for peer, equals, column in (entry.partition("=") for entry in label) if peer in profiles}
    text = draft_contract(
        profiles, name=name, label=plain[0], labels=named, positive=positive, negative=negative, columns=columns
    )
    open_points = text.count("# AGREE:")
    if output is not None:
        with writing(output) as file:
            file.write(text.encode())
    if as_json:
        print_json({"contract": text, "open": open_points, "written": str(output) if output else None})
        return
    if output is None:
        out.print(text, soft_wrap=True, end="")
        return
    err.print(f"Wrote {output}.", end=" ")
    err.print(f"Fill in what is marked AGREE ({open_points})." if open_points else "Nothing is left open.")
    err.print(f"Edit it, then: radocraft contract check {output}")


@app.command()
def check(
    contract: Annotated[Path, typer.Argument(help="The contract file.")],
    as_json: Json = False,
) -> None:
    """Report every mistake in a contract, each with its place and its remedy.

    Example: radocraft contract check contract.toml
    """
    mistakes = check_contract(contract)
    print_mistakes(mistakes, as_json)
    if not mistakes and not as_json:
        agreed = Contract.load(contract)
        out.print(f"{contract} is valid. Fingerprint {agreed.fingerprint[:16]}.")
    if mistakes:
        raise typer.Exit(ContractError.exit_code)


@app.command()
def show(
    contract: Annotated[Path, typer.Argument(help="The contract file.")],
    as_json: Json = False,
) -> None:
    """Explain a contract in words.

    Example: radocraft contract show contract.toml
    """
    agreed = Contract.load(contract)
    if as_json:
        print_json({"fingerprint": agreed.fingerprint, **agreed.model_dump(mode="json")})
    else:
        out.print(describe_contract(agreed))
