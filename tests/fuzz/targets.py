"""What is fuzzed: one target per kind of file or message that comes from outside.

A target gives a few valid inputs to start from, and reads any bytes as its users would: opening,
checking, and doing with what was read what comes next. It may raise errors of ours; anything else is a finding.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.unit.parts.releases import CONTRACT, headed, make

from radocraft import Contract, Policy, Tally, craft, example_peers, learn, release, share
from radocraft.contract import Profile, describe_contract
from radocraft.demo._example import CONTRACT as EXAMPLE
from radocraft.errors import AwaitsReview, RadocraftError
from radocraft.gate import Noise
from radocraft.ledger import Budget, Ledger
from radocraft.model import load_model
from radocraft.net._members import read_members
from radocraft.net._messages import Answer, Assignment, Delivery, Fetch, Hello, Receipt, Request
from radocraft.parts import Histograms, Part
from radocraft.parts._part import _hash
from radocraft.peer._pending import Pending
from radocraft.rows import Scorer, score_rows

MESSAGES = (Hello, Request, Answer, Assignment, Fetch, Delivery, Receipt)
MEMBERS = b'[bank]\ncertificate = "bank.example"\njobs_per_day = 3\n[shop]\ntoken = "sha256:' + b"0" * 64 + b'"\n'
LARGEST = 2**20  # what a fuzzer's input may hold
SCORES = """
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "age", edges = [40] }]
key = [{ name = "day", categories = [0, 1, 2, 3, 4, 5, 6, 7] }]
peers.bank.features = { risk = { kind = "score", model = "linear" } }
peers.shop.features = { habit = { kind = "score", model = "linear" } }
"""


@dataclass(frozen=True)
class Target:
    """A kind of input: valid ones to start from, what is done with any, and words that such inputs are made of."""

    name: str
    seeds: Callable[[], list[bytes]]
    use: Callable[[bytes], object]
    words: tuple[bytes, ...] = ()

    def run(self, content: bytes) -> bool:
        """Use an input; whether it was taken. Errors of ours are what is wanted, all others are let through."""
        if len(content) > LARGEST:
            return False
        try:
            self.use(content)
        except RadocraftError as error:
            str(error).encode()  # what cannot be written cannot be told
            return False
        return True


@contextmanager
def on_disk(content: bytes, name: str = "file") -> Iterator[Path]:
    """The input as a file in a folder of its own."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


@cache
def world() -> tuple[Contract, dict[str, pa.Table]]:
    """The example's contract and small tables."""
    return example_peers(rows=400)


@cache
def scores() -> tuple[Contract, pa.Table]:
    """A contract of scores, and a table of one of its peers."""
    rng = np.random.default_rng(0)
    bad = rng.integers(0, 2, 300)
    columns = {"bad": bad, "age": rng.integers(20, 70, 300), "x": bad + rng.normal(size=300)}
    return Contract.parse(SCORES), pa.table({**columns, "day": rng.integers(0, 8, 300)})


def saved(write: Callable[[Path], object], name: str = "file") -> bytes:
    """What is in a file that this writes."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


# --- contracts, policies, profiles ------------------------------------------------------------------


def contracts() -> list[bytes]:
    """The example's, one of every kind of feature, one of scores."""
    return [EXAMPLE.encode(), SCORES.encode(), CONTRACT.encode()]


def use_contract(content: bytes) -> None:
    with on_disk(content, "contract.toml") as path:
        contract = Contract.load(path)
    str(describe_contract(contract)).encode()
    assert len(contract.fingerprint) == 64


POLICY = b"""noise = 0.5
min_rows = 10
bound = 4.0
unit = "person"
person = "customer"
rows_per_person = 3
lifetime_epsilon = 8.0
delta = 1e-6
features = ["income"]
review = true
ledger = "bank.ledger"
table = "customers"
"""


def use_policy(content: bytes) -> None:
    with on_disk(content, "policy.toml") as path:
        str(Policy.load(path).guarantee).encode()


def profiles() -> list[bytes]:
    table = world()[1]["bank"]
    plain = {"columns": [{"name": name, "kind": "number"} for name in table.column_names]}
    outlined = {"columns": [{"name": "age", "kind": "integer", "quartiles": [1, 2, 3]}], "guarantee": "epsilon 1"}
    return [json.dumps(plain).encode(), json.dumps(outlined).encode()]


def use_profile(content: bytes) -> None:
    with on_disk(content) as path:
        str(Profile.load(path).by_name)


# --- parts ------------------------------------------------------------------------------------------


@cache
def parts() -> tuple[Part, ...]:
    """A part of columns, an exact one, and one of scores."""
    contract, table = scores()
    with tempfile.TemporaryDirectory() as folder:
        return (
            headed(make()),
            headed(make(noise=0.0)),
            share(table, contract, "bank", output=f"{folder}/part"),
        )


def contract_of(part: Part) -> Contract:
    return scores()[0] if part.of_scores else make().contract


def part_files() -> list[bytes]:
    out = []
    for part in parts():
        sink = pa.BufferOutputStream()
        part._stream(sink)
        out.append(sink.getvalue().to_pybytes())
    return out


def use_part(content: bytes) -> None:
    part = Part.read(io.BytesIO(content), "it")
    (part.scores if part.of_scores else part.cells)(contract_of(part))


def forged(part: Part, metadata: object) -> bytes:
    """A part's file with other metadata under the right hash, so that no hash stands before what it says."""
    sink = pa.BufferOutputStream()
    text = metadata
    if isinstance(metadata, dict):
        names = part.table.column_names
        try:
            digest = _hash(((name, part.table.column(name)) for name in names), metadata)
            text = json.dumps({**metadata, "hash": digest})
        except (KeyError, TypeError, ValueError, AttributeError):
            text = json.dumps(metadata)
    with pq.ParquetWriter(
        sink, part.table.schema, compression="zstd", use_dictionary=False, write_statistics=False, store_schema=False
    ) as writer:
        writer.write_table(part.table)
        writer.add_key_value_metadata({"radocraft": text if isinstance(text, bytes) else str(text)})
    return sink.getvalue().to_pybytes()


def heads() -> list[bytes]:
    return [bytes([at]) + json.dumps(part.metadata).encode() for at, part in enumerate(parts())]


def use_head(content: bytes) -> None:
    part = parts()[content[0] % len(parts())] if content else parts()[0]
    try:
        metadata = json.loads(content[1:])
    except (ValueError, RecursionError):
        metadata = content[1:]
    use_part(forged(part, metadata))


# --- what stays at a peer: tallies, ledgers, pending files, scorers ---------------------------------


def tallies() -> list[bytes]:
    contract, tables = world()
    tally = craft(tables["bank"], contract, "bank", bounds=Policy().bounds, noise=Noise.seeded(0))
    return [saved(tally.save), saved(craft(tables["bank"], contract, "bank", bounds=None).save)]


def use_tally(content: bytes) -> None:
    contract = world()[0]
    with on_disk(content) as path:
        tally = Tally.load(path, contract)
    release(tally, contract, Policy() if tally.bounds else Policy.exact(10), Noise.seeded(0))


@cache
def peer_folder() -> dict[str, bytes]:
    """Files that a peer keeps after a proposal that was refused, made again, and a plain release."""
    contract, tables = world()
    place = Path(tempfile.mkdtemp())  # the pending file names its ledger, so the folder stays as long as we run
    atexit.register(shutil.rmtree, place)
    share(tables["bank"], contract, "bank", output=place / "part")
    policy = Policy(review=True, ledger=str(place / "bank.ledger"))
    with suppress(AwaitsReview):
        share(tables["bank"].slice(0, 300), contract, "bank", policy=policy, output=place / "two")
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


def ledgers() -> list[bytes]:
    return [peer_folder()["bank.ledger"]]


def rehashed(content: bytes) -> bytes:
    """Lines whose chain of hashes is right, whatever they say."""
    out, previous = [], "0" * 64
    for number, text in enumerate(content.split(b"\n")):
        try:
            line = json.loads(text)
            body = {key: value for key, value in line.items() if key != "hash"}
            body |= {"number": number, "previous": previous}
            plain = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
            previous = hashlib.sha256(plain.encode()).hexdigest()
            out.append(json.dumps({**body, "hash": previous}).encode())
        except (ValueError, RecursionError, AttributeError):
            out.append(text)
    return b"\n".join(out)


def use_ledger(content: bytes) -> None:
    first, rest = content[:1], content[1:]
    with on_disk(rehashed(rest) if first == b"r" else content, "ledger") as path:
        history = Ledger(path).history()
        for entry in history.leaving():
            history.stage_of(entry)
            history.spent(entry.table)
            if entry.limits is not None:
                str(Budget.of(history, entry.table, entry.limits).remains)


def pendings() -> list[bytes]:
    return [peer_folder()["two.pending"]]


def use_pending(content: bytes) -> None:
    with on_disk(content) as path:
        str(Pending.read(path).summary)


@cache
def scorer() -> bytes:
    contract, table = scores()
    return saved(score_rows(table, contract, "bank")[1].save)


def use_scorer(content: bytes) -> None:
    with on_disk(content) as path:
        Scorer.load(path).score(scores()[1].slice(0, 5))


# --- models, counts, messages -----------------------------------------------------------------------


@cache
def models() -> list[bytes]:
    contract, tables = world()
    columns = learn([share(tables[peer], contract, peer) for peer in contract.peers], contract)
    agreed, table = scores()
    others = learn([share(table, agreed, peer) for peer in agreed.peers], agreed)
    return [saved(columns.save), saved(others.save)]


def use_model(content: bytes) -> None:
    with on_disk(content) as path:
        model = load_model(path)
    model.explain() if hasattr(model, "explain") else None
    model.predict(world()[1]["bank"].slice(0, 3))


COUNTS = Histograms(
    model="0" * 64, peer="bank", guarantee="none", negative=(1,) * 64, positive=(2,) * 64, noise=1.0, rho=0.5
)


def use_counts(content: bytes) -> None:
    with on_disk(content) as path:
        counts = Histograms.load(path)
    counts.check("bank", "0" * 64)
    assert counts.total >= 0


def messages() -> list[bytes]:
    hello = b'{"version":1,"name":"bank","radocraft":"0.1.0","time":"2026-01-01T00:00:00Z"}'
    request = Request.now("bank", "risk", "0" * 64, timedelta(hours=1), id="a" * 32).encode()
    return [hello, request, b'{"version":1,"job":"' + b"0" * 64 + b'","state":"ready"}']


def use_message(content: bytes) -> None:
    refusals = []
    for kind in MESSAGES:
        try:
            kind.decode(content).encode()
        except RadocraftError as error:
            refusals.append(error)
    if len(refusals) == len(MESSAGES):
        raise refusals[0]


def use_members(content: bytes) -> None:
    with on_disk(content) as path:
        read_members(path)


ODD = (b"nan", b"inf", b"1e999", b"-1", b"0", b"true", b'"\\u0000"', b'"\\ud800"', b"[", b"]", b"{", b"}")
TOML = (*ODD, b'"', b"'", b" = ", b"\n", b"[[")
JSON = (*ODD, b"null", b"{}", b"[]", b"NaN", b"[" * 2000, b"1e300")
TARGETS = {
    target.name: target
    for target in (
        Target("contract", contracts, use_contract, TOML),
        Target("policy", lambda: [POLICY, b""], use_policy, TOML),
        Target("profile", profiles, use_profile, JSON),
        Target("part", part_files, use_part),
        Target("part-head", heads, use_head, JSON),
        Target("tally", tallies, use_tally, JSON),
        Target("ledger", lambda: [*ledgers(), *(b"r" + one for one in ledgers())], use_ledger, JSON),
        Target("pending", pendings, use_pending, JSON),
        Target("scorer", lambda: [scorer()], use_scorer, JSON),
        Target("model", models, use_model, JSON),
        Target("counts", lambda: [COUNTS.encode()], use_counts, JSON),
        Target("message", messages, use_message, JSON),
        Target("members", lambda: [MEMBERS], use_members, TOML),
    )
}
