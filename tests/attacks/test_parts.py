"""A learner's enemy sends parts. Each is refused by an error of ours, whatever it holds.

The enemy knows this code: its parts have the right hash (`forged`), so that what
is refused is refused for what it says.
"""

import base64
import io
import json
import os
import re
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.parts.releases import LABELS, agreed, headed, make

import radocraft as rc
from radocraft.cli import main
from radocraft.contract._contract import Contract
from radocraft.demo._example import CONTRACT as EXAMPLE
from radocraft.errors import AwaitsReview, ContractMismatch, FileError, Tampered
from radocraft.parts._footer import WORDS
from radocraft.parts._part import Part, _hash
from radocraft.parts._sign import public_key, sign

MADE = make()
PART = headed(MADE)
EXACT = make(noise=0.0)
EXACT_PART = headed(EXACT)


def packed(table: pa.Table, metadata: object, **options: object) -> bytes:
    """The bytes of a part file with any content."""
    sink = pa.BufferOutputStream()
    words = [name for name in table.column_names if name.startswith(WORDS)]
    lean = {"compression": "zstd", "use_dictionary": words, "write_statistics": False, "store_schema": False}
    with pq.ParquetWriter(sink, table.schema, **{**lean, **options}) as writer:
        writer.write_table(table)
        text = metadata if isinstance(metadata, str | bytes) else json.dumps(metadata)
        writer.add_key_value_metadata({"radocraft": text})
    return sink.getvalue().to_pybytes()


def forged(part: Part = PART, table: pa.Table | None = None, **changes: object) -> bytes:
    """A part with another table or other fields, and the hash that belongs to it."""
    table, metadata = part.table if table is None else table, {**part.metadata, **changes}
    if "hash" not in changes:
        metadata["hash"] = _hash(((name, table.column(name)) for name in table.column_names), metadata)
    return packed(table, metadata)


def arrive(content: bytes, contract=None):
    """What a learner does with it."""
    return Part.read(io.BytesIO(content), "it").cells(contract or MADE.contract)


def changed(name: str, change, part: Part = PART) -> pa.Table:
    """The part's table with something done to a column, given and returned as a NumPy array."""
    column = part.table.column(name)
    values = column.to_numpy().copy()
    there = column.is_valid().to_numpy()
    values[there] = change(values[there].copy())
    new = pa.array(values, column.type, mask=~there)
    return part.table.set_column(part.table.column_names.index(name), name, new)


def test_what_is_not_forged_arrives():
    for made, part in ((MADE, PART), (EXACT, EXACT_PART)):
        cells = arrive(forged(part), made.contract)
        np.testing.assert_array_equal(cells.sums, made.cells.sums)


# --- metadata -------------------------------------------------------------------------------------

DEEP = "DEEP"
BAD = {
    "nothing": None,
    "-1": -1,
    "1e308": 1e308,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "x": "x",
    "true": True,
    "no list": [],
    "no object": {},
    "list of lists": [[], [[]]],
    "control": "bank\x1b[2J",
    "turned round": "bank\u202e",
    "half a sign": "\ud800",
    "huge text": "y" * 2_000_000,
    "huge number": 10**400,
    "many": [0.0] * 1_200_000,
    "deep": DEEP,
}
FIELDS = [(key,) for key in PART.metadata] + [
    (key, inner) for key, value in PART.metadata.items() if isinstance(value, dict) for inner in value
]
FIELDS += [("columns", 0), ("centre", 0), ("scale", 0), ("notes", 0), ("constants", "curve", 0), ("constants", "new")]
HARMLESS = {
    ("radocraft", "x"),
    ("notes", "no list"),
    ("notes.0", "x"),
    ("policy.guarantee", "x"),
    ("policy.noise", "nothing"),
    ("policy.epsilon", "nothing"),
    ("policy.delta", "nothing"),
    ("policy.rho", "nothing"),
    ("constants", "no object"),
    ("constants.curve", "no list"),
    ("constants.curve.0", "-1"),
    ("centre.0", "-1"),
}
"""What may be otherwise: words for people, and what a table may be like."""


def with_field(metadata: dict, path: tuple, value: object) -> dict:
    """A copy with one field replaced."""
    copy = json.loads(json.dumps(metadata))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


@pytest.mark.parametrize("name", [*BAD])
@pytest.mark.parametrize("path", FIELDS, ids=lambda path: ".".join(map(str, path)))
def test_a_field_of_another_kind_is_refused(path, name):
    if (".".join(map(str, path)), name) in HARMLESS:
        return
    metadata = with_field(PART.metadata, path, BAD[name])
    if path != ("hash",) and BAD[name] is not DEEP:
        metadata["hash"] = _hash(((n, PART.table.column(n)) for n in PART.table.column_names), metadata)
    text = json.dumps(metadata).replace(f'"{DEEP}"', "[" * 100_000 + "]" * 100_000)
    with pytest.raises((FileError, ContractMismatch)) as raised:
        arrive(packed(PART.table, text))
    assert len(str(raised.value)) < 500
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("path", sorted(HARMLESS))
def test_a_field_that_may_be_otherwise_is_not(path):
    steps = [int(step) if step.isdigit() else step for step in path[0].split(".")]
    metadata = with_field(PART.metadata, tuple(steps), BAD[path[1]])
    metadata.pop("hash")
    arrive(forged(**metadata))


@pytest.mark.parametrize("key", [*PART.metadata])
def test_a_field_that_is_not_there_is_refused(key):
    metadata = {name: value for name, value in PART.metadata.items() if name not in (key, "hash")}
    columns = ((n, PART.table.column(n)) for n in PART.table.column_names)
    if key != "hash":
        metadata["hash"] = _hash(columns, metadata)
    with pytest.raises(FileError):
        arrive(packed(PART.table, metadata))


TEXT = json.dumps(PART.metadata)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2]",
        "3",
        "{",
        "null",
        TEXT.replace('"format": 2', '"format": 1'),
        TEXT[:-1] + ', "peer": "insurer"}',
        TEXT[:-1] + ', "more": 1}',
        TEXT.replace('"rows":', '"rows": NaN, "rows":'),
        "{" * 100_000,
        '{"a":' * 100_000,
        '{"a": ' + "9" * 100_000 + "}",
        b"\xff\xfe{}",
    ],
)
def test_metadata_that_is_none_is_refused(text):
    with pytest.raises(FileError):
        arrive(packed(PART.table, text))


def test_a_format_that_is_no_number_reaches_no_terminal():
    with pytest.raises(FileError, match="has format") as raised:
        arrive(packed(PART.table, {**PART.metadata, "format": "\x1b[2J" * 10}))
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"peer": "insurer"}, "its private columns are not the contract's"),
        ({"peer": "shop"}, "has no peer 'shop'"),
        ({"fingerprint": "0" * 64}, "was made under the contract"),
        ({"contract": "another"}, "another name for the contract"),
        ({"ledger": None}, "no ledger stands for it"),
        ({"rows": PART.metadata["rows"] + 1}, "do not add up to its total"),
        ({"columns": PART.metadata["columns"][::-1]}, "are not the contract's"),
        ({"scale": [-s for s in PART.metadata["scale"]]}, "'scale' that is invalid"),
        ({"scale": [0.0 for _ in PART.metadata["scale"]]}, "'scale' that is invalid"),
        ({"scale": [2 * s for s in PART.metadata["scale"]]}, "is not in the contract's units"),
        ({"centre": PART.metadata["centre"][1:]}, "one centre and one scale"),
        ({"levels": dict.fromkeys(PART.metadata["levels"], 0.0)}, "contradicts itself about the noise"),
        ({"constants": {"curve": [1.0, 0.0]}}, "constants of 'curve'"),
        ({"constants": {"curve": [0.0, 1.0, 2.0, 3.0]}}, "constants of 'curve'"),
        ({"constants": {"income": [0.0, -1.0]}}, "constants of 'income'"),
        ({"constants": {"score": [0.0, 1.0]}}, "constants of 'score'"),
        ({"moments": {"no": PART.metadata["moments"]["no"]}}, "other labels"),
        ({"moments": {**PART.metadata["moments"], "maybe": ""}}, "other labels"),
        ({"hidden": {}}, "other labels"),
        ({"moments": {**PART.metadata["moments"], "no": PART.metadata["moments"]["no"][:-16]}}, "its moments"),
        ({"notes": ["a", "b"] * 600}, "'notes' that is invalid"),
    ],
)
def test_metadata_that_contradicts_the_contract_or_itself_is_refused(changes, said):
    with pytest.raises((FileError, ContractMismatch), match=said):
        arrive(forged(**changes))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("kind", ["moments", "hidden"])
def test_a_matrix_that_is_not_finite_is_refused(kind, value):
    numbers = np.frombuffer(base64.b64decode(PART.metadata[kind]["no"])).copy()
    numbers[3] = value
    with pytest.raises(FileError, match="not finite"):
        arrive(forged(**{kind: {**PART.metadata[kind], "no": base64.b64encode(numbers).decode()}}))


# --- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shared:region", "label", "rows", "sum:income", "shared-sum:size"])
def test_a_missing_column_is_refused(name):
    with pytest.raises(FileError, match="refused"):
        arrive(forged(table=PART.table.drop_columns([name])))


@pytest.mark.parametrize("name", ["sum:more", "shared:more", "shared-sum:more", "present:income", "odd", "sum", "Rows"])
def test_a_further_column_is_refused(name):
    same = PART.table.column("label" if name.startswith("shared:") else "sum:income")
    same = PART.table.column("rows") if name.startswith("present:") else same
    with pytest.raises(FileError, match="refused"):
        arrive(forged(table=PART.table.append_column(name, same)))


def test_a_column_that_is_there_twice_is_refused():
    table = PART.table.append_column("sum:income", PART.table.column("sum:income"))
    with pytest.raises(FileError, match="twice"):
        arrive(packed(table, PART.metadata))


@pytest.mark.parametrize("name", ["shared:age", "label", "rows", "sum:income", "shared-sum:size"])
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.float32(), pa.int32(), pa.uint64(), pa.bool_(), pa.list_(pa.float64()), pa.date32(), None]
)
def test_a_column_of_another_type_is_refused(name, kind):
    count, was = PART.table.num_rows, PART.table.column(name).type
    kind = kind or pa.struct({"a": pa.float64()})
    if kind == was or (pa.types.is_dictionary(was) and kind == pa.string()):
        return
    values = pa.array([None] * count, kind)
    with pytest.raises(FileError, match="refused"):
        arrive(packed(PART.table.set_column(PART.table.column_names.index(name), name, values), PART.metadata))


@pytest.mark.parametrize("name", ["shared:age", "label", "rows", "sum:income", "shared-sum:size"])
@pytest.mark.parametrize("all_of_them", [False, True])
def test_nulls_are_refused(name, all_of_them):
    values = PART.table.column(name).to_pylist()
    for at in range(len(values)) if all_of_them else [next(at for at, v in enumerate(values) if v is not None)]:
        values[at] = None
    kind = pa.string() if name.startswith(WORDS) else PART.table.column(name).type
    new = pa.array(values, kind)
    new = new.dictionary_encode() if name.startswith(WORDS) else new
    with pytest.raises(FileError, match="refused"):
        arrive(forged(table=PART.table.set_column(PART.table.column_names.index(name), name, new)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e308])
@pytest.mark.parametrize("name", ["sum:income", "shared-sum:size"])
@pytest.mark.parametrize("part", [PART, EXACT_PART], ids=["noisy", "exact"])
def test_numbers_that_are_not_finite_are_refused(part, name, value):
    def spoil(values):
        values[len(values) // 2] = value
        return values

    with pytest.raises(FileError, match="not finite"):
        arrive(forged(part, table=changed(name, spoil, part)), EXACT.contract)


@pytest.mark.parametrize("word", ["west", "", "\x1b[2J", "north\0", "NORTH", "y" * 1_000_000])
@pytest.mark.parametrize("name", ["shared:region", "label"])
def test_a_word_that_the_contract_does_not_know_is_refused(name, word):
    words = [word, *PART.table.column(name).to_pylist()[1:]]
    at = PART.table.column_names.index(name)
    with pytest.raises(FileError, match="not in the contract"):
        arrive(forged(table=PART.table.set_column(at, name, pa.array(words).dictionary_encode())))


def test_a_label_that_its_holder_cannot_lack_is_refused():
    words = ["any", *PART.table.column("label").to_pylist()[1:]]
    at = PART.table.column_names.index("label")
    with pytest.raises(FileError, match="not in the contract"):
        arrive(forged(table=PART.table.set_column(at, "label", pa.array(words).dictionary_encode())))


def test_cells_that_come_twice_are_refused():
    table = pa.concat_tables([PART.table, PART.table.slice(0, 1)])
    rows = int(np.sum(table.column("rows").to_numpy()))
    with pytest.raises(FileError, match="twice"):
        arrive(forged(table=table, rows=rows))


def test_a_code_after_an_any_is_refused():
    codes = PART.table.column("shared:age").to_pylist()
    at = next(at for at, size in enumerate(PART.table.column("shared:size").to_pylist()) if size != "any")
    codes[at] = "any"
    new = pa.array(codes).dictionary_encode()
    with pytest.raises(FileError, match="has a code after"):
        arrive(forged(table=PART.table.set_column(PART.table.column_names.index("shared:age"), "shared:age", new)))


def test_half_labelled_cells_are_refused():
    made = make(agreed(LABELS["held by the other"]))
    part = headed(made)
    arrive(forged(part), made.contract)
    labels = pa.array(["yes", *part.table.column("label").to_pylist()[1:]]).dictionary_encode()
    table = part.table.set_column(part.table.column_names.index("label"), "label", labels)
    with pytest.raises(FileError, match="some have none"):
        arrive(forged(part, table=table), made.contract)


def test_a_table_without_cells_is_refused():
    with pytest.raises(FileError, match="no cells"):
        arrive(packed(PART.table.slice(0, 0), PART.metadata))


# --- numbers that no rows have --------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, -1, -(2**62), 2**62])
def test_counts_below_one_and_beyond_measure_are_refused(rows):
    table = changed("rows", lambda values: np.concatenate([[rows], values[1:]]))
    with pytest.raises(FileError):
        arrive(forged(table=table, rows=max(1, int(np.sum(table.column("rows").to_numpy())))))


@pytest.mark.parametrize("factor", [-5.0, 5.0])
@pytest.mark.parametrize("made", [MADE, EXACT], ids=["noisy", "exact"])
def test_sums_grown_five_fold_are_refused(made, factor):
    part = headed(made)
    table = part.table
    for name in [name for name in table.column_names if name.startswith("sum:")]:
        new = pa.array(table.column(name).to_numpy() * factor)
        table = table.set_column(table.column_names.index(name), name, new)
    with pytest.raises(FileError, match=r"sum of|add up|contradict"):
        arrive(forged(part, table=table), made.contract)


@pytest.mark.parametrize("name", ["income", "score", "curve~1"])
@pytest.mark.parametrize("made", [make(rows=6000), make(rows=6000, noise=0.0)], ids=["noisy", "exact"])
def test_sums_of_one_column_grown_five_fold_contradict_the_moments(made, name):
    part = headed(made)
    signs = np.where(part.table.column("label").to_numpy() == "yes", 5.0, 1.0)
    table = changed(f"sum:{name}", lambda values: values * 5 + signs * part.table.column("rows").to_numpy(), part)
    with pytest.raises(FileError, match=r"contradict|larger than"):
        arrive(forged(part, table=table), made.contract)


def matrices(part: Part, change) -> dict[str, str]:
    """The moments by label, with something done to each matrix."""
    width, out = len(part.metadata["columns"]), {}
    places = np.triu_indices(width)
    for label, text in part.metadata["moments"].items():
        matrix = np.zeros((width, width))
        matrix[places] = np.frombuffer(base64.b64decode(text))
        matrix = change(matrix + np.triu(matrix, 1).T)
        out[label] = base64.b64encode(np.ascontiguousarray(matrix[places])).decode()
    return out


@pytest.mark.parametrize(
    "change",
    [
        lambda m: -m,
        lambda m: 0 * m,
        lambda m: 0.01 * m,
        lambda m: 1000 * m,
        lambda m: m - 2 * np.diag(np.diag(m)),
        lambda m: m + 1.5 * np.sqrt(np.outer(np.diag(m), np.diag(m))) * (1 - np.eye(len(m))),
        lambda m: m - 3 * np.linalg.eigvalsh(m)[-1] * np.ones_like(m) / len(m),
    ],
    ids=["negative", "none", "small", "large", "negative squares", "too related", "indefinite"],
)
@pytest.mark.parametrize("made", [make(rows=6000), make(rows=6000, noise=0.0)], ids=["noisy", "exact"])
def test_moments_that_no_rows_have_are_refused(made, change):
    part = headed(made)
    with pytest.raises(FileError, match="moments"):
        arrive(forged(part, moments=matrices(part, change)), made.contract)


def test_moments_beyond_the_row_bound_are_refused():
    """Each column could be that large, all of them together could not."""
    made = make(rows=6000)
    part, rows = headed(made), made.cells.rows.sum() / 2
    with pytest.raises(FileError, match="larger than so many rows can have"):
        arrive(forged(part, moments=matrices(part, lambda m: m + 0.9 * rows * np.diag([16.0] * len(m)))), made.contract)


@pytest.mark.parametrize("kind", ["two values", "classes"])
@pytest.mark.parametrize("noise", [0.5, 0.0])
def test_swapped_labels_are_refused(kind, noise):
    """The rarer label has too few rows for the moments of the other."""
    made = make(agreed(LABELS[kind]), rows=6000, noise=noise)
    part = headed(made)
    arrive(forged(part), made.contract)
    names = [*part.metadata["moments"]]
    turned = dict(zip(names, names[::-1], strict=True))
    labels = pa.array([turned[word] for word in part.table.column("label").to_pylist()]).dictionary_encode()
    table = part.table.set_column(part.table.column_names.index("label"), "label", labels)
    hidden = {turned[name]: text for name, text in part.metadata["hidden"].items()}
    with pytest.raises(FileError, match="moments"):
        arrive(forged(part, table=table, hidden=hidden), made.contract)


def test_a_lie_that_rows_could_tell_passes():
    """All numbers turned round: so would be the part of somebody whose columns are turned round."""
    signs = {"sum:income": -1.0, "sum:score": -1.0}
    table, columns = PART.table, PART.metadata["columns"]
    for name, turned in signs.items():
        new = pa.array(table.column(name).to_numpy() * turned)
        table = table.set_column(table.column_names.index(name), name, new)
    turn = np.array([signs.get(f"sum:{name}", 1.0) for name in columns])
    width, own = len(columns), MADE.contract.shared_columns
    hidden = {}
    for label, text in PART.metadata["hidden"].items():
        numbers = np.frombuffer(base64.b64decode(text)).copy()
        count = next(h for h in range(1, len(own) + 1) if h * width + h * (h + 1) // 2 == len(numbers))
        numbers[: count * width] = (numbers[: count * width].reshape(count, width) * turn).ravel()
        hidden[label] = base64.b64encode(numbers).decode()
    arrive(forged(table=table, moments=matrices(PART, lambda m: m * np.outer(turn, turn)), hidden=hidden))


@pytest.mark.parametrize("least", [False, True])
def test_more_values_than_rows_are_refused(least):
    part = EXACT_PART
    rows = part.table.column("rows").to_numpy()
    table = changed("present:income", lambda values: -values if least else rows + 1, part)
    with pytest.raises(FileError, match="more values are present"):
        arrive(forged(part, table=table), EXACT.contract)


def test_a_sum_of_no_values_is_refused():
    table = changed("present:income", lambda values: 0 * values, EXACT_PART)
    with pytest.raises(FileError, match="sum of no values"):
        arrive(forged(EXACT_PART, table=table), EXACT.contract)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("sum:income", lambda v: v + 4 * PART.table.column("rows").to_numpy() + 100, "sum of 'income'"),
        ("sum:owner", lambda v: v + 2 * PART.table.column("rows").to_numpy() + 60, "sum of 'owner'"),
        ("sum:job=clerk", lambda v: v - 1 * PART.table.column("rows").to_numpy() - 40, "sum of 'job=clerk'"),
        ("sum:job=missing", lambda v: v + 0.9 * PART.table.column("rows").to_numpy() + 40, "do not add up|sum of"),
        ("shared-sum:size", lambda v: v - 1000, "sums of 'size'"),
        ("shared-sum:age=missing", lambda v: v + 50, "sums of 'age'"),
        ("shared-sum:age=(-inf, 30)", lambda v: v * 0 - 50, "sums of 'age'"),
    ],
)
def test_sums_beyond_what_rows_can_have_are_refused(name, change, said):
    with pytest.raises(FileError, match=said):
        arrive(forged(table=changed(name, change)))


def test_a_sum_of_the_shared_column_where_the_code_is_known_is_refused():
    values = PART.table.column("shared-sum:size").fill_null(1.0)
    at = PART.table.column_names.index("shared-sum:size")
    with pytest.raises(FileError, match="just where the code is 'any'"):
        arrive(forged(table=PART.table.set_column(at, "shared-sum:size", values)))


def test_moments_of_a_label_without_rows_are_refused():
    made = make(agreed(LABELS["classes"]), noise=0.0)
    part = Part.of(made)
    keep = np.array([word != "c" for word in part.table.column("label").to_pylist()])
    table = part.table.filter(pa.array(keep))
    hidden = {name: text for name, text in part.metadata["hidden"].items() if name != "c"}
    rows = int(np.sum(table.column("rows").to_numpy()))
    with pytest.raises(FileError, match="moments of the label 'c', and no rows"):
        arrive(forged(part, table=table, rows=rows, hidden=hidden), made.contract)


# --- the file -------------------------------------------------------------------------------------


def refused_soon(content: bytes, match: str | None = None) -> None:
    """Within two seconds, and with little memory."""
    pool, start = pa.proxy_memory_pool(pa.default_memory_pool()), time.perf_counter()
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(FileError, match=match):
            arrive(content)
    finally:
        pa.set_memory_pool(usual)
    assert time.perf_counter() - start < 2
    assert pool.max_memory() < 300e6


@pytest.fixture(scope="module")
def runs() -> bytes:
    """A million equal rows: some kilobytes that unpack to 1.4 gigabytes of sums."""
    count = 1_000_000
    same = {name: PART.table.column(name).combine_chunks() for name in PART.table.column_names}
    columns = {name: pa.repeat(column[0], count) for name, column in same.items()}
    columns |= {f"sum:more{at}": pa.repeat(1.0, count) for at in range(170)}
    return packed(pa.table(columns), PART.metadata, use_dictionary=True)


def test_long_runs_are_refused_before_they_are_unpacked(runs):
    assert len(runs) < 0.8e6
    refused_soon(runs, "would unpack to")


def test_zeros_that_compression_hides_are_refused_before_they_are_unpacked():
    table = pa.table({"label": pa.array(["no"]).take(pa.array(np.zeros(12_000_000, int)))})
    table = table.append_column("rows", pa.array(np.ones(12_000_000, np.int64)))
    for at in range(3):
        table = table.append_column(f"sum:{at}", pa.array(np.zeros(12_000_000)))
    refused_soon(packed(table, PART.metadata, use_dictionary=False), "would unpack to")


def test_a_word_of_many_megabytes_in_many_rows_takes_its_room_once():
    words = pa.DictionaryArray.from_arrays(np.zeros(PART.table.num_rows * 50_000, np.int32), ["y" * 4_000_000])
    table = pa.table({"label": words, "rows": np.ones(len(words), np.int64)})
    refused_soon(packed(table, PART.metadata))


def footer_of(content: bytes) -> tuple[int, bytes]:
    length = struct.unpack("<I", content[-8:-4])[0]
    return len(content) - 8 - length, content[-8 - length : -8]


def varint(number: int) -> bytes:
    number, out = number * 2, b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def with_footer(content: bytes, old: int, new: int) -> bytes:
    """The same file with every such number in its footer replaced."""
    start, footer = footer_of(content)
    footer = footer.replace(varint(old), varint(new))
    return content[:start] + footer + struct.pack("<I", len(footer)) + content[-4:]


@pytest.mark.parametrize("rows", [1, 10**9, 2**62])
def test_a_footer_that_lies_about_the_rows_is_refused(rows):
    refused_soon(with_footer(forged(), PART.table.num_rows, rows))


def test_pages_that_unpack_to_more_than_the_footer_says_are_refused():
    """A page's own size is what Arrow believes: it would take 400 MB for what is said to be 30 rows."""
    count = 50_000_000
    table = pa.table({"rows": np.ones(count, np.int64)})
    sink = pa.BufferOutputStream()
    one_page = {"data_page_size": 2**30, "max_rows_per_page": count, "use_dictionary": False, "write_statistics": False}
    with pq.ParquetWriter(sink, table.schema, compression="zstd", store_schema=False, **one_page) as writer:
        writer.write_table(table, row_group_size=count)
        writer.add_key_value_metadata({"radocraft": json.dumps(PART.metadata)})
    content = sink.getvalue().to_pybytes()
    assert len(content) < 100_000
    with pq.ParquetFile(io.BytesIO(content)) as file:
        chunk = file.metadata.row_group(0).column(0)
    content = with_footer(with_footer(content, count, 30), chunk.total_uncompressed_size, 300)
    with pq.ParquetFile(io.BytesIO(content)) as file:
        chunk = file.metadata.row_group(0).column(0)
        assert (file.metadata.num_rows, chunk.num_values, chunk.total_uncompressed_size) == (30, 30, 300)
    refused_soon(content, "would unpack to")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_a_file_cut_short_is_refused(share):
    content = forged()
    with pytest.raises(FileError, match="not a readable part"):
        arrive(content[: int(share * len(content))])


@pytest.mark.parametrize(
    "options",
    [{"compression": "snappy"}, {"compression": "none"}, {"groups": 1}, {"use_byte_stream_split": ["sum:income"]}],
    ids=str,
)
def test_another_packing_is_refused(options):
    content = io.BytesIO()
    table, metadata = PART.table, {"radocraft": json.dumps(PART.metadata)}
    groups, usual = options.get("groups", 10**6), {"compression": "zstd", "use_dictionary": False}
    options = {name: value for name, value in options.items() if name != "groups"}
    with pq.ParquetWriter(content, table.schema, **{**usual, **options}) as w:
        w.write_table(table, row_group_size=groups)
        w.add_key_value_metadata(metadata)
    with pytest.raises(FileError, match="refused"):
        arrive(content.getvalue())


def test_further_metadata_is_refused():
    content = io.BytesIO()
    with pq.ParquetWriter(content, PART.table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(PART.table)
        writer.add_key_value_metadata({"radocraft": json.dumps(PART.metadata), "pandas": "{}"})
    with pytest.raises(FileError, match="further metadata"):
        arrive(content.getvalue())


def test_types_that_a_stored_schema_promises_are_refused():
    content = io.BytesIO()
    with pq.ParquetWriter(content, PART.table.schema, compression="zstd", store_schema=True) as writer:
        writer.write_table(PART.table)
        writer.add_key_value_metadata({"radocraft": json.dumps(PART.metadata)})
    with pytest.raises(FileError, match="further metadata"):
        arrive(content.getvalue())


def test_other_files_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "plain.parquet")
    pq.write_table(pa.table({"a": [1]}, metadata={"radocraft": "{}"}), tmp_path / "odd.parquet")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for path in [*tmp_path.iterdir(), tmp_path / "nowhere", tmp_path / ("n" * 5000), tmp_path / "a\0b"]:
        with pytest.raises(FileError, match=r"Cannot read the part|not a readable part|is refused"):
            Part.read(path)


def test_a_link_to_a_part_is_read(tmp_path):
    (tmp_path / "part").write_bytes(forged())
    (tmp_path / "link").symlink_to(tmp_path / "part")
    assert Part.read(tmp_path / "link").peer == "bank"


VALID = forged()


@settings(max_examples=400, deadline=None)
@given(
    spots=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8),
    cut=st.one_of(st.none(), st.floats(0, 1)),
    near_end=st.booleans(),
)
def test_changed_bytes_give_the_same_part_or_an_error_of_ours(spots, cut, near_end):
    content = bytearray(VALID)
    start = footer_of(VALID)[0] if near_end else 0
    for share, byte in spots:
        content[start + int(share * (len(content) - start))] = byte
    if cut is not None:
        del content[int(cut * len(content)) :]
    try:
        part = Part.read(io.BytesIO(bytes(content)), "it")
        cells = part.cells(MADE.contract)
    except FileError:
        return
    assert part.metadata == PART.metadata
    np.testing.assert_array_equal(cells.sums, MADE.cells.sums)


def test_a_changed_part_with_its_old_hash_is_called_changed():
    with pytest.raises(Tampered, match="does not match its hash"):
        arrive(packed(changed("sum:income", lambda values: np.nextafter(values, 9)), PART.metadata))


# --- by the command line --------------------------------------------------------------------------

SIGNER = ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@dataclass(frozen=True)
class Learner:
    """A learner's folder with an honest insurer's part, and the bank's, which the enemy changes."""

    folder: Path
    contract: Contract
    bank: Part
    run: Callable[..., tuple[int, str, str]]

    def words(self, way: str, file: Path) -> tuple[str, ...]:
        contract, insurer = str(self.folder / "contract.toml"), str(self.folder / "insurer.parquet")
        return {
            "learn": ("learn", "-c", contract, str(file), insurer, "-o", str(self.folder / "model.json")),
            "inspect": ("inspect", str(file)),
            "inspect, checked": ("inspect", "-c", contract, str(file)),
            "review": ("review", str(file) + ".pending"),
            "approve": ("review", str(file) + ".pending", "--approve", "--name", "E", "--reason", "r"),
        }[way]

    def receive(self, content: bytes) -> Path:
        """Put a file where the learner has it, and where a reviewer would find it waiting."""
        file = self.folder / "bank.parquet"
        file.write_bytes(content)
        with zipfile.ZipFile(self.folder / "honest.pending") as honest:
            note = honest.read("review.json")
        with zipfile.ZipFile(f"{file}.pending", "w") as archive:
            archive.writestr("review.json", note)
            archive.writestr("content", content)
        return file


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Contract, Part]:
    """Two parts of many rows, the bank's signed, and one that waits for review."""
    folder = tmp_path_factory.mktemp("learner")
    contract, tables = rc.example_peers(rows=30_000)
    text = EXAMPLE + f'\n[peers.bank]\npublic_key = "{public_key(SIGNER)}"\n'
    (folder / "contract.toml").write_text(text)
    contract = Contract.parse(text)
    for peer, table in tables.items():
        rc.share(table, contract, peer, output=folder / f"{peer}.parquet", sign=SIGNER if peer == "bank" else None)
    with pytest.raises(AwaitsReview):
        rc.share(tables["bank"], contract, "bank", policy=rc.Policy(11, review=True), output=folder / "honest")
    return folder, contract, Part.read(folder / "bank.parquet")


@pytest.fixture
def learner(honest, monkeypatch, capsys) -> Learner:
    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["radocraft", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), *capsys.readouterr()

    return Learner(*honest, run)


def table_with(part: Part, name: str, values: object) -> pa.Table:
    new = pa.array(values)
    new = new.dictionary_encode() if name.startswith(WORDS) else new
    return part.table.set_column(part.table.column_names.index(name), name, new)


def multiplied(part: Part, factor: float) -> bytes:
    table = part.table
    for name in [name for name in table.column_names if name.startswith("sum:")]:
        new = pa.array(table.column(name).to_numpy() * factor)
        table = table.set_column(table.column_names.index(name), name, new)
    return forged(part, table)


def doubled(part: Part) -> bytes:
    table = pa.concat_tables([part.table, part.table.slice(0, 1)])
    return forged(part, table, rows=int(np.sum(table.column("rows").to_numpy())))


def swapped(part: Part) -> bytes:
    words = [{"yes": "no", "no": "yes"}[word] for word in part.table.column("label").to_pylist()]
    hidden = {{"yes": "no", "no": "yes"}[word]: text for word, text in part.metadata["hidden"].items()}
    return forged(part, table_with(part, "label", words), hidden=hidden)


def spoilt(part: Part, value: float) -> bytes:
    return forged(part, table_with(part, "sum:income", [value, *part.table.column("sum:income").to_pylist()[1:]]))


def worded(part: Part, name: str, word: str) -> bytes:
    return forged(part, table_with(part, name, [word, *part.table.column(name).to_pylist()[1:]]))


def deep(part: Part) -> bytes:
    return packed(part.table, json.dumps(part.metadata)[:-1] + ', "more": ' + "[" * 100_000 + "]" * 100_000 + "}")


FORGERIES = {
    "sums times -5": lambda part: multiplied(part, -5.0),
    "negative moments": lambda part: forged(part, moments=matrices(part, lambda m: -m)),
    "duplicate cells": doubled,
    "swapped labels": swapped,
    "negative scale": lambda part: forged(part, scale=[-s for s in part.metadata["scale"]]),
    "NaN": lambda part: spoilt(part, float("nan")),
    "1e300": lambda part: spoilt(part, 1e300),
    "missing column": lambda part: forged(part, part.table.drop_columns(["sum:income"])),
    "missing label": lambda part: forged(part, part.table.drop_columns(["label"])),
    "deep JSON": deep,
    "moments of nobody": lambda part: forged(part, moments={}),
    "control characters": lambda part: forged(part, notes=["\x1b[2Jall is well"]),
    "unknown code": lambda part: worded(part, "shared:region", "mars"),
    "a code that steers a terminal": lambda part: worded(part, "shared:region", "\x1b[2J\x1b]0;gone\x07"),
}


def with_the_key(content: bytes) -> bytes:
    """The same, signed: the enemy is the bank itself, or has its key."""
    with pq.ParquetFile(io.BytesIO(content)) as file:
        text, table = file.metadata.metadata[b"radocraft"], file.read().replace_schema_metadata(None)
    try:
        metadata = json.loads(text)
    except RecursionError:
        return content
    return packed(table, {**metadata, "signature": sign(metadata["hash"], SIGNER)})


UNSEEN = {"unknown code", "a code that steers a terminal"}
"""What only the contract shows to be wrong."""


@pytest.mark.parametrize("way", ["learn", "inspect", "inspect, checked", "review", "approve"])
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_with_a_reason_by_every_command(learner: Learner, name: str, way: str) -> None:
    file = learner.receive(with_the_key(FORGERIES[name](learner.bank)))
    for more in ([], ["--json"]):
        code, out, err = learner.run(*learner.words(way, file), *more)
        assert "\x1b" not in out + err
        if way == "inspect" and name in UNSEEN:
            assert code == 0
            continue
        assert code == (4 if way in ("review", "approve") and "never proposed" in flat(err) else 1), (out, err)
        assert out == ""
        said = json.loads(err)["message"] if more else flat(err)
        assert re.search(r"refused|not a readable part|never proposed", said), said
        assert "Traceback" not in err
    assert not (learner.folder / "model.json").exists()


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("way", ["learn", "inspect", "inspect, checked", "review"])
def test_what_is_not_forged_is_taken_by_every_command(learner: Learner, way: str) -> None:
    file = learner.folder / "honest" if way == "review" else learner.receive(sent(learner.bank))
    code, out, err = learner.run(*learner.words(way, file))
    assert code == 0, err
    if way == "inspect":
        assert "without --contract codes, units and signature were not checked" in flat(out)
    if way == "inspect, checked":
        assert "everything, under the contract, including the signature" in flat(out)
    (learner.folder / "model.json").unlink(missing_ok=True)


def sent(part: Part) -> bytes:
    sink = io.BytesIO()
    part.stream(sink)
    return sink.getvalue()


@pytest.mark.parametrize("way", ["learn", "inspect, checked"])
def test_a_part_that_its_peer_did_not_sign_is_refused_where_the_contract_lists_a_key(
    learner: Learner, way: str
) -> None:
    """An enemy who makes a part as it should be in every number still lacks the bank's key."""
    other = ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    bare = {name: value for name, value in learner.bank.metadata.items() if name != "signature"}
    for part, said in (
        (replace(learner.bank, metadata=bare), "is not signed"),
        (learner.bank.signed(other), "not signed by the key"),
        (Part.read(io.BytesIO(forged(learner.bank, notes=["another"]))), "not signed by the key"),
    ):
        code, out, err = learner.run(*learner.words(way, learner.receive(sent(part))), "--json")
        told = json.loads(err)
        assert (code, out, told["error"], said in told["message"]) == (1, "", "Tampered", True), told
