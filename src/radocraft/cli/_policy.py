"""radocraft policy new|check|show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._outputs import Force, Output, check_outputs
from radocraft.cli._terminal import Json, err, out, print_json, print_mistakes
from radocraft.errors import PolicyError
from radocraft.files import writing
from radocraft.gate import Policy, check_policy, describe_policy, draft_policy

app = typer.Typer(help="Draft, check and explain a peer's policy: what may leave.", no_args_is_help=True)
PolicyFile = Annotated[Path, typer.Argument(help="The policy file.")]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The peer the policy is for.")] = "peer",
    output: Output = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draft a policy with safe values.

    Example: radocraft policy new bank -o policy.toml
    """
    check_outputs([output], [], force=force)
    text = draft_policy(name)
    if output is not None:
        with writing(output) as file:
            file.write(text.encode())
    if as_json:
        print_json({"policy": text, "written": str(output) if output else None})
        return
    if output is None:
        out.print(text, soft_wrap=True, end="")
        return
    err.print(f"Wrote {output}. Check it with: radocraft policy show {output}")


@app.command()
def check(policy: PolicyFile, as_json: Json = False) -> None:
    """Report every mistake in a policy, each with its place and its remedy.

    Example: radocraft policy check policy.toml
    """
    mistakes = check_policy(policy)
    print_mistakes(mistakes, as_json)
    if not mistakes and not as_json:
        out.print(f"{policy} is valid.")
    if mistakes:
        raise typer.Exit(PolicyError.exit_code)


@app.command()
def show(policy: PolicyFile, as_json: Json = False) -> None:
    """Explain a policy in words.

    Example: radocraft policy show policy.toml
    """
    rules = Policy.load(policy)
    if as_json:
        print_json({**rules.model_dump(mode="json"), "words": describe_policy(rules)})
    else:
        out.print("\n".join(describe_policy(rules)))
