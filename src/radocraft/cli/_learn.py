"""radocraft learn."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._explain import print_certificate, print_effects, print_validation
from radocraft.cli._outlook import print_score_model
from radocraft.cli._outputs import Force, check_outputs
from radocraft.cli._terminal import ContractFile, Json, out, print_json
from radocraft.contract import Contract
from radocraft.gate import describe_rows
from radocraft.learning import learn as learn_model
from radocraft.model import Model, ScoreModel


class Method(StrEnum):
    """How to learn."""

    matching = "matching"
    drl = "drl"
    scores = "scores"
    average = "average"


class Proportions(StrEnum):
    """How sums by label are estimated for peers that lack it."""

    label_differences = "adjusted"
    mean_map = "mean-map"
    laplacian = "laplacian"


class Regularisation(StrEnum):
    """The paper's Gamma."""

    tuned = "tuned"
    identity = "identity"


def learn(
    parts: Annotated[list[Path], typer.Argument(help="One part file of each peer.")],
    contract: ContractFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    method: Annotated[
        Method | None,
        typer.Option(help="Columns: expected matching, or the paper's DRL. Scores: fitted weights, or their average."),
    ] = None,
    caution: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="0 trusts the average over all matchings, 1 is never worse than the best peer. "
            "[0.25, or less if sums show it]",
        ),
    ] = None,
    linked: Annotated[
        Path | None,
        typer.Option(help="Truly linked rows, if there are any: they choose the caution and validate the model."),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(min=0, help="Ridge strength; chosen from the parts by default.")
    ] = None,
    regularisation: Annotated[Regularisation, typer.Option(help="For drl: Gamma.")] = Regularisation.tuned,
    proportions: Annotated[
        Proportions,
        typer.Option(
            metavar="HOW",
            help="For peers without the label: how to estimate their sums by label: adjusted, mean-map or laplacian.",
        ),
    ] = Proportions.label_differences,
    in_common: Annotated[
        float,
        typer.Option(min=0, max=1, help="For scores with a key: the share of people that two peers have in common."),
    ] = 1.0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn one model from the peers' parts.

    Example: radocraft learn --contract contract.toml bank.part.parquet insurer.part.parquet -o model.json
    """
    check_outputs([output], [contract, linked, *parts], force=force)
    agreed = Contract.load(contract)
    model = learn_model(
        list(parts),
        agreed,
        method=method.value if method else None,
        caution=caution,
        linked=linked,
        alpha=alpha,
        regularisation=regularisation.value,
        proportions=proportions.value,
        in_common=in_common,
    )
    model.save(output)
    if as_json:
        print_json(model.model_dump(mode="json", exclude={"blocks", "contract", "signatures"}))
        return
    out.print(_learned(model))
    if isinstance(model, ScoreModel):
        print_score_model(model)
        out.print(f"Wrote {output}. Next: radocraft predict {output} bank.scores.parquet ... -o scores.csv")
        return
    print_certificate(model)
    print_validation(model)
    print_effects(model)
    for note in model.notes:
        out.print(f"Note: {note}.")
    out.print(f"Wrote {output}. Next: radocraft predict {output} people.csv -o scores.csv")


def _learned(model: Model | ScoreModel) -> str:
    rows = ", ".join(
        f"{origin.peer} ({describe_rows(origin.rows, origin.gate.mode if origin.gate else 'exact')} rows in "
        f"{origin.cells:,} cells)"
        for origin in model.learned_from
    )
    if isinstance(model, ScoreModel):
        return f"Learned from scores of {rows}."
    return f"Learned from {rows} by {model.method}; {len(model.blocks.labels):,} common blocks."
