"""A part over Flight with mutual TLS against a plain Flight stream of the same table: python benchmarks/network.py 500.

Everything on this machine, over loopback: one process sends, another receives. ``plain`` streams the part's table
without TLS to a reader that drops it; ``stream`` is our stream, which also writes the file and checks its hash;
``whole`` is all a collector does until the part counts as arrived. Each is run three times, in turn.
"""

import multiprocessing
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
from measure import measure
from tables import arguments, show

from radocraft.contract._columns import summed_columns
from radocraft.contract._contract import Contract
from radocraft.gate._account import Spend
from radocraft.gate._policy import Policy
from radocraft.gate._release import Release
from radocraft.net._authority import init_authority, issue
from radocraft.net._channel import Channel
from radocraft.net._chunks import CHUNK, Incoming
from radocraft.net._collection import Wanted
from radocraft.net._collector import Collector
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Fetch, Request
from radocraft.net._peer import PeerNode
from radocraft.parts._part import Part
from radocraft.sums._cells import Cells, assemble, encoded_sums

COLUMNS = 100
NAMES = {"plain": "plain Flight, no TLS", "stream": "our stream", "whole": "until the part counts as arrived"}
ROUNDS = 3


def contract_of(megabytes: int) -> Contract:
    """Two shared features with as many bins as it takes."""
    bins = round((megabytes * 1e6 / (8 * COLUMNS) / 2) ** 0.5)
    features = "\n".join(f"x{at} = {{ kind = 'numeric', centre = 0, scale = 1 }}" for at in range(COLUMNS))
    shared = [f"{{ name = '{name}', edges = {list(range(1, bins))} }}" for name in ("place", "age")]
    label = '{ column = "label", positive = 1, negative = 0 }'
    return Contract.parse(
        f'name = "large"\nlabel = {label}\nshared = [{", ".join(shared)}]\n[peers.bank.features]\n{features}\n'
    )


def write_part(megabytes: int, path: Path) -> None:
    """A sound part, its sums such that no compression shrinks them."""
    contract = contract_of(megabytes)
    bins = len(contract.shared[0].edges or ()) + 1
    count, shared = 2 * bins * bins, len(contract.shared_columns)
    codes, rows = np.repeat(np.indices((bins, bins)).reshape(2, -1).T, 2, axis=0), np.full(count, 50)
    sums = np.random.default_rng(0).normal(size=(count, COLUMNS))
    cells = Cells(
        peer="bank",
        columns=tuple(column.name for column in summed_columns(contract, "bank")),
        centre=np.zeros(COLUMNS),
        scale=np.ones(COLUMNS),
        codes=codes,
        labels=np.tile([-1, 1], bins * bins),
        rows=rows,
        sums=sums,
        present=np.broadcast_to(rows[:, None], sums.shape),
        shared=encoded_sums(contract, codes, rows),
        by_label=np.empty((0, 0, 0)),
    )
    private = np.broadcast_to(rows.sum() / 2 * np.eye(COLUMNS), (2, COLUMNS, COLUMNS))
    hidden = np.zeros((2, shared, COLUMNS + shared))
    cells = replace(cells, by_label=assemble(contract, cells, private, hidden))
    Part.of(Release(contract, Policy.exact(), cells, Spend(np.inf), 0)).write(path)


@dataclass(frozen=True)
class Ready:
    """A peer's work that is done: it hands out a part."""

    fingerprint: str
    part: Path

    @property
    def contracts(self) -> tuple[str, ...]:
        """The one contract."""
        return (self.fingerprint,)

    def stage(self, kind: str, job: str, output: Path) -> Any:
        """Whether the part is there."""
        return "released" if output.exists() else "nothing"

    def make(self, fingerprint: str, job: str, output: Path, model: Path | None) -> None:
        """Put the part there."""
        output.hardlink_to(self.part)


class Plain(fl.FlightServerBase):
    """The table, as Flight streams it by itself."""

    def __init__(self, part: Path) -> None:
        self._table = Part.read(part).table
        super().__init__("grpc://127.0.0.1:0")

    def do_get(self, context: Any, ticket: Any) -> Any:
        """The table, in batches of about a megabyte like ours."""
        rows = max(1, CHUNK * self._table.num_rows // self._table.nbytes)
        batches = self._table.to_batches(max_chunksize=rows)
        return fl.RecordBatchStream(pa.RecordBatchReader.from_batches(self._table.schema, batches))


def send(folder: Path, megabytes: int, told: Any) -> None:
    """The process that sends: tells its two ports, then waits to be ended."""
    plain = Plain(folder / "part.parquet")
    work = Ready(contract_of(megabytes).fingerprint, folder / "part.parquet")
    with PeerNode(Identity.load(folder / "bank"), "bank", work, folder / "jobs") as node:
        told.send((plain.port, node.serve("127.0.0.1:0")))
        told.recv()


def receive_plain(port: int) -> float:
    started = time.perf_counter()
    for _ in fl.FlightClient(f"grpc://127.0.0.1:{port}").do_get(fl.Ticket(b"")):
        pass
    return time.perf_counter() - started


def receive_stream(folder: Path, megabytes: int, port: int, number: int) -> float:
    contract = contract_of(megabytes)
    request = Request.now("bank", contract.name, contract.fingerprint, timedelta(hours=1), id=f"{number:032x}")
    own = Identity.load(folder / "collector")
    with Channel.open(own, Member(name="bank"), f"127.0.0.1:{port}") as channel:
        while (answer := channel.act("request", request, Answer)).state == "working":
            time.sleep(0.1)
        started = time.perf_counter()
        incoming = Incoming(folder / f"stream-{number}", answer.size or 0, answer.sha256 or "")
        channel.fetch(Fetch(what="part", job=request.job), incoming, lambda have: None)
        incoming.verify()
        return time.perf_counter() - started


def receive_whole(folder: Path, megabytes: int, port: int, number: int) -> float:
    started = time.perf_counter()
    places = {"bank": f"127.0.0.1:{port}"}
    own = Identity.load(folder / "collector")
    with Collector(own, Wanted.parts(contract_of(megabytes)), folder / f"whole-{number}", places) as collector:
        collector.gather()
    return time.perf_counter() - started


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("megabytes", nargs="?", type=int, default=500, help="about how large the part is")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        measure(write_part, given.megabytes, folder / "part.parquet")
        init_authority(folder / "authority")
        issue(folder / "authority", "collector", folder / "collector")
        issue(folder / "authority", "bank", folder / "bank", trust=("collector",))
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        sender = multiprocessing.get_context("spawn").Process(
            target=send, args=(folder, given.megabytes, theirs), daemon=True
        )
        sender.start()
        plain, secured = ours.recv()
        megabytes = (folder / "part.parquet").stat().st_size / 1e6
        taken: dict[str, list[float]] = {"plain": [], "stream": [], "whole": []}
        peaks: dict[str, list[float]] = {"plain": [], "stream": [], "whole": []}
        for at in range(ROUNDS):
            for name, cost in (
                ("plain", measure(receive_plain, plain)),
                ("stream", measure(receive_stream, folder, given.megabytes, secured, at)),
                ("whole", measure(receive_whole, folder, given.megabytes, secured, at)),
            ):
                taken[name].append(cost.result)
                peaks[name].append(cost.peak / 1e6)
            for path in [*folder.glob("stream-*"), *folder.glob("whole-*/*.parquet")]:
                path.unlink()
        ours.send("done")
        sender.join()
    finally:
        shutil.rmtree(folder)
    speed = {name: megabytes / median(times) for name, times in taken.items()}
    figures = {"megabytes": megabytes, "megabytes a second": speed, "seconds": taken, "peak megabytes": peaks}
    lines = [
        (NAMES[name], f"{speed[name]:.0f} MB/s", f"{speed[name] / speed['plain']:.2f}", f"{max(peaks[name]):.0f} MB")
        for name in taken
    ]
    show(given, figures, (f"{megabytes:.0f} MB", "speed", "of a plain stream", "peak memory"), lines)


if __name__ == "__main__":
    main()
