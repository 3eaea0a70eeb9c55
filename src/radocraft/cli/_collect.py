"""radocraft collect."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._learn import Method
from radocraft.cli._outputs import Force, check_outputs, same_content
from radocraft.cli._peer import IdentityFolder, MetricsPort, split
from radocraft.cli._terminal import ContractFile, Json, err, out, print_json
from radocraft.contract import Contract
from radocraft.errors import ContractMismatch
from radocraft.files import writing
from radocraft.learning import learn as learn_model
from radocraft.learning import recalibrate
from radocraft.model import Model, ScoreModel, load_column_model, load_model
from radocraft.net import Collector, Identity, Wanted, serve_metrics
from radocraft.parts import Histograms

_MAILBOX = "mailbox"
Learn = Callable[[dict[str, Path]], Model | ScoreModel]


def collect(
    contract: ContractFile,
    peers: Annotated[
        str,
        typer.Option("--from", metavar="PEER=HOST:PORT,…", help="Every peer's address, or `mailbox` if it dials in."),
    ],
    identity: IdentityFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    second_round: Annotated[
        Path | None,
        typer.Option("--second-round", metavar="MODEL", help="Ask for counts of this model's scores; recalibrate it."),
    ] = None,
    job: Annotated[
        Path | None, typer.Option(help="Where the job is kept; give it again to continue. [OUTPUT.job]")
    ] = None,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where the mailbox listens.")] = None,
    wait: Annotated[float, typer.Option(min=0, help="How many hours the peers have to answer.")] = 24.0,
    method: Annotated[Method | None, typer.Option(help="As for `radocraft learn`.")] = None,
    caution: Annotated[float | None, typer.Option(min=0, max=1, help="As for `radocraft learn`.")] = None,
    keep_model: Annotated[bool, typer.Option("--keep-model", help="Do not send the model to the peers.")] = False,
    linger: Annotated[float, typer.Option(min=0, help="Seconds to wait for peers to fetch the model.")] = 60.0,
    metrics: MetricsPort = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Ask the peers for their parts, learn, and send them the model.

    Example: radocraft collect -c contract.toml -i me --from bank=bank.example:8815,insurer=10.0.0.7:8815 -o model.json
    """
    folder = job or output.with_name(output.name + ".job")
    again = output.is_file() and same_content(output, folder / "model.json")
    check_outputs([output], [contract, identity, second_round], force=force or again)
    agreed, ours = Contract.load(contract), Identity.load(identity)
    places = {peer: None if place == _MAILBOX else place for peer, place in map(split, peers.split(","))}
    if second_round is None:
        wanted, learn = _first(agreed, method, caution)
    elif method or caution is not None:
        raise typer.BadParameter("--method and --caution are for learning, not for the second round.")
    else:
        wanted, learn = _second(second_round, agreed, {*places})
    report_state = (lambda peer, state: None) if as_json else (lambda peer, state: err.print(f"{peer}: {state}"))
    with Collector(
        ours,
        wanted,
        folder,
        places,
        listen=listen,
        wait=timedelta(hours=wait),
        returns=not keep_model,
        report=report_state,
    ) as collector:
        page = serve_metrics(metrics, collector.metrics, lambda: None) if metrics else None
        if collector.port is not None and not as_json:
            err.print(f"The mailbox listens on {str(listen).rpartition(':')[0]}:{collector.port}.")
        files = collector.gather()
        model = _learned(collector, learn, files)
        with writing(output) as file, collector.collection.model.open("rb") as kept:
            shutil.copyfileobj(kept, file)
        without = collector.give_back(timedelta(seconds=linger))
        if page is not None:
            page.shutdown()
    _conclude(model, output, files, without, as_json)


def _first(contract: Contract, method: Method | None, caution: float | None) -> tuple[Wanted, Learn]:
    """Parts, and what is learned from them."""

    def learn(files: dict[str, Path]) -> Model | ScoreModel:
        return learn_model(
            [*files.values()], contract, method=None if method is None else method.value, caution=caution
        )

    return Wanted.parts(contract), learn


def _second(path: Path, contract: Contract, peers: set[str]) -> tuple[Wanted, Learn]:
    """Counts of a model's scores, and the model recalibrated by them."""
    model = load_column_model(path)
    model.check_single()
    if model.contract.fingerprint != contract.fingerprint:
        raise ContractMismatch(f"'{path}' was learned under another contract. Pass that contract.")
    if peers != {*model.peers}:
        raise typer.BadParameter(f"The second round asks every peer of the model: {', '.join(model.peers)}.")

    def check(file: Path, peer: str) -> None:
        Histograms.load(file).check(peer, model.identity)

    def learn(files: dict[str, Path]) -> Model:
        return recalibrate(model, [Histograms.load(file) for file in files.values()])

    return Wanted.scores(contract, path, check), learn


def _learned(collector: Collector, learn: Learn, files: dict[str, Path]) -> Model | ScoreModel:
    """The model of the job, learned now or before a restart."""
    kept = collector.collection.model
    if not kept.exists():
        learn(files).save(kept)
    collector.note_learned(files)
    return load_model(kept)


def _conclude(
    model: Model | ScoreModel, output: Path, files: dict[str, Path], without: dict[str, str], as_json: bool
) -> None:
    second = model.second_round if isinstance(model, Model) else None
    if as_json:
        kind = "parts" if second is None else "scores"
        came = {peer: str(path) for peer, path in files.items()}
        print_json({"model": str(output), kind: came, "not_returned": without})
        return
    if second is None:
        out.print(f"Learned from {', '.join(model.peers)} by {model.method}; wrote {output}.")
    else:
        assert isinstance(model, Model)
        out.print(f"{model.expectation} {second.assumption}")
        out.print(f"Wrote {output}, its probabilities recalibrated.")
    for peer, reason in without.items():
        out.print(f"{peer} does not have the model yet: {reason}")
    out.print(f"See it: radocraft explain {output}")
