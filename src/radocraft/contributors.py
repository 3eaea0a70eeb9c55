"""Who makes up a peer's sums: the largest absolute values of every block and column.

One more statement over the table, asked only where the policy has a rule on
dominance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Contract
from radocraft.encoding import Reader, summed_columns
from radocraft.expressions import double
from radocraft.features import Boolean, Categorical
from radocraft.policy import Policy
from radocraft.policy.limits import Contributors
from radocraft.ranking import Ranking
from radocraft.sources import open_source
from radocraft.sources.base import ROWS
from radocraft.tally import Tally


def find_contributors(
    data: Any, contract: Contract, peer: str, tally: Tally, policy: Policy, *, ranking: Ranking | None = None
) -> Contributors | None:
    """The largest contributors of every block, or None if the policy has no rule on dominance.

    Parameters
    ----------
    data
        The table the tally was crafted from.
    contract, peer, tally, policy
        As for `craft` and `release`.
    ranking
        What gave the rows their labels, if the peer lacks it; see `labelling`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from radocraft import Contract, Policy, craft
    >>> contract = Contract.parse('''
    ... name = "risk"
    ... label = { column = "bad", positive = 1, negative = 0 }
    ... peers.bank.features = { income = "numeric" }
    ... ''')
    >>> rows = pa.table({"bad": [0, 0, 0, 1], "income": [2.0, -9.0, None, 4.0]})
    >>> tally, policy = craft(rows, contract, "bank"), Policy(dominance={"share": 0.8})
    >>> found = find_contributors(rows, contract, "bank", tally, policy)
    >>> found.absolute.ravel(), found.largest[:, 0]
    (array([11.,  4.]), array([[9., 2.],
           [4., 0.]]))
    """
    if policy.dominance is None:
        return None
    source = open_source(data)
    reader = Reader(contract, peer, source.kinds(), tally.constants, ranking)
    ranks = max(policy.dominance.largest, 2)
    kinds = [contract.summed(peer)[column.feature] for column in summed_columns(contract, peer)]
    counted = [at for at, kind in enumerate(kinds) if not isinstance(kind, Categorical | Boolean)]
    answer = source.table(statement(reader, counted, ranks))
    blocks, width = answer.num_rows, len(kinds)
    absolute, largest = np.zeros((blocks, width)), np.zeros((blocks, width, ranks))
    for at in counted:
        absolute[:, at] = _array(answer, f"total_{at}")
        for rank in range(ranks):
            largest[:, at, rank] = _array(answer, f"top_{at}_{rank}")
    codes = [_array(answer, f"code_{at}").astype(np.int64) for at in range(len(contract.shared))]
    return Contributors(
        codes=np.column_stack([np.empty((blocks, 0), dtype=np.int64), *codes]),
        labels=_array(answer, "label").astype(np.int64),
        absolute=absolute,
        largest=largest,
    )


def statement(reader: Reader, counted: list[int], ranks: int) -> exp.Query:
    """Sum and largest of the absolute values of some private columns, by block."""
    keys = [reader.code(shared).as_(f"code_{at}") for at, shared in enumerate(reader.contract.shared)]
    keys.append(reader.label().as_("label"))
    names = [key.alias for key in keys]
    values = reader.summed()
    sizes = [exp.func("COALESCE", exp.Abs(this=values[at].copy()), double(0)).as_(f"size_{at}") for at in counted]
    inner = exp.select(*keys, *sizes).from_(reader.rows(ROWS)).subquery("encoded")
    ranked = exp.select(*names, *(f"size_{at}" for at in counted)).from_(inner)
    for at in counted:
        order = exp.Order(expressions=[exp.Ordered(this=exp.column(f"size_{at}"), desc=True)])
        window = exp.Window(this=exp.RowNumber(), partition_by=[exp.column(name) for name in names], order=order)
        ranked = ranked.select(window.as_(f"rank_{at}"))
    answer = exp.select(*names)
    for at in counted:
        answer = answer.select(exp.func("SUM", exp.column(f"size_{at}")).as_(f"total_{at}"))
        for rank in range(ranks):
            here = exp.EQ(this=exp.column(f"rank_{at}"), expression=exp.Literal.number(rank + 1))
            size = exp.Case().when(here, exp.column(f"size_{at}")).else_(double(0))
            answer = answer.select(exp.func("MAX", size).as_(f"top_{at}_{rank}"))
    return answer.from_(ranked.subquery("ranked")).group_by(*names).order_by(*names)


def _array(table: pa.Table, name: str) -> Floats:
    out: Floats = table.column(name).to_numpy()
    return out
