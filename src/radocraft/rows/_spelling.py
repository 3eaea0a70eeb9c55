"""Categories that nobody agreed on: how many rows have one, and whether only capitals and blanks stand in the way.

What is said here is counted exactly. It is for people at the peer, and leaves nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from radocraft.contract import Categorical, Value, show
from radocraft.rows._encoding import Reader
from radocraft.rows._expressions import coded, whole, word
from radocraft.rows.engines._base import ROWS, Source

_SHARE = 0.01


def spelled_otherwise(source: Source, reader: Reader) -> Iterator[str]:
    """A sentence for each text column of which a hundredth of the rows or more have no agreed category."""
    features = _listed(reader)
    if not features:
        return
    asked: list[exp.Expr] = [exp.func("COUNT", exp.Star()).as_("n_rows")]
    for at, (name, categories) in enumerate(features.items()):
        raw, own = reader.column(name), reader.contract.as_read(reader.peer, name, categories)
        unseen = exp.EQ(this=coded(raw, "text", own), expression=whole(len(own) + 1))
        plain = word(raw).isin(*(show(value).strip(" ").lower() for value in categories))
        asked.append(exp.func("COUNT", exp.Case().when(unseen, whole(1))).as_(f"unseen_{at}"))
        asked.append(exp.func("COUNT", exp.Case().when(exp.and_(unseen.copy(), plain), whole(1))).as_(f"plain_{at}"))
    found = source.table(exp.select(*asked).from_(ROWS)).to_pylist()[0]
    for at, name in enumerate(features):
        column, rows = reader.contract.column_of(reader.peer, name), found[f"unseen_{at}"]
        if rows < max(_SHARE * found["n_rows"], 1):
            continue
        remedy = "see `values` under" if not found[f"plain_{at}"] else "see `fold` under"
        only = f", {found[f'plain_{at}']:,} of them only in capitals or blanks" if found[f"plain_{at}"] else ""
        yield (
            f"{column}: {rows:,} of {found['n_rows']:,} rows are spelled otherwise than agreed{only}; {remedy} "
            f"[peers.{reader.peer}.cleaning]. They count as `unseen`."
        )


def _listed(reader: Reader) -> dict[str, tuple[Value, ...]]:
    """The features with agreed categories that are text in the table."""
    contract = reader.contract
    listed = {shared.name: shared.categories for shared in contract.shared if shared.categories and not shared.date}
    own = {n: f.categories for n, f in contract.peers[reader.peer].features.items() if isinstance(f, Categorical)}
    return {name: categories for name, categories in (listed | own).items() if reader.kind(name) == "text"}
