"""radocraft count, radocraft recalibrate: the second round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._outputs import Force, check_outputs
from radocraft.cli._terminal import Json, err, out, print_json
from radocraft.files import size
from radocraft.gate import Policy
from radocraft.learning import recalibrate as recalibrate_model
from radocraft.model import load_column_model
from radocraft.parts import BINS, Histograms
from radocraft.peer import share_counts


def count(
    model: Annotated[Path, typer.Argument(help="The model the learner sent.")],
    table: Annotated[str, typer.Argument(help="The peer's table: a file, a folder or a database, as for craft.")],
    peer: Annotated[str, typer.Option("--peer", "-p", help="Which peer of the contract the table belongs to.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of counts to write.")],
    policy: Annotated[Path | None, typer.Option(help="The peer's policy, a TOML file.")] = None,
    secret: Annotated[
        Path | None, typer.Option(help="The file of the secret that keys are hashed with, if the contract says so.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Count how this peer's share of a model's scores is distributed.

    Example: radocraft count model.json bank.parquet --peer bank -o bank.scores.json
    """
    check_outputs([output], [model, table, policy, secret], force=True)  # what is there may be the same counts
    rules, notes = Policy.load(policy) if policy is not None else Policy(), list[str]()
    counts = share_counts(
        table,
        load_column_model(model),
        peer,
        policy=rules,
        output=output,
        replace=force,
        secret=secret,
        say=notes.append,
    )
    if as_json:
        counted = {"scores": str(output), "peer": peer, "rows": counts.total, "noise": counts.noise}
        print_json({**counted, "notes": notes})
        return
    for note in notes:
        err.print(note)
    out.print(
        f"Wrote {output}: about {counts.total:,} rows counted in {2 * BINS} bins, {size(output.stat().st_size)}. "
        "Send it to the learner: radocraft recalibrate"
    )


def recalibrate(
    model: Annotated[Path, typer.Argument(help="The model file.")],
    counts: Annotated[list[Path], typer.Argument(help="One file of counts per peer, from `radocraft count`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    in_common: Annotated[
        float, typer.Option(min=0, max=1, help="With a key: the share of people whom two peers both hold.")
    ] = 1.0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Recalibrate a model's probabilities from every peer's counts of scores.

    Example: radocraft recalibrate model.json bank.scores.json insurer.scores.json -o model2.json
    """
    check_outputs([output], [model, *counts], force=force)
    read = load_column_model(model)
    better = recalibrate_model(read, [Histograms.load(path) for path in counts], in_common)
    better.save(output)
    second = better.second_round
    if as_json or second is None:
        print_json(second.model_dump(mode="json") if second else None)
        return
    out.print(f"{better.expectation} {second.assumption}")
    out.print(f"Before these counts: {read.expectation}")
    out.print(f"Wrote {output}, its probabilities recalibrated.")
