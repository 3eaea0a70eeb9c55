"""A part of many megabytes, and a peer's work that hands it out."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from radocraft.contract._columns import summed_columns
from radocraft.contract._contract import Contract
from radocraft.gate._account import Spend
from radocraft.gate._policy import Policy
from radocraft.gate._release import Release
from radocraft.net._jobs import Work
from radocraft.parts._part import Part
from radocraft.sums._cells import Cells, assemble, encoded_sums

CONTRACT = """
name = "many blocks"
label = {{ column = "label", positive = 1, negative = 0 }}
shared = [{{ name = "place", edges = {edges} }}, {{ name = "age", edges = {edges} }}]
[peers.bank.features]
{features}
[peers.shop.features]
visits = "numeric"
"""


def big_contract(bins: int, columns: int) -> Contract:
    """Two shared features of so many bins, and so many private columns of a bank."""
    features = "\n".join(f"x{at} = {{ kind = 'numeric', centre = 0, scale = 1 }}" for at in range(columns))
    return Contract.parse(CONTRACT.format(edges=list(range(1, bins)), features=features))


def big_part(contract: Contract, peer: str = "bank") -> Part:
    """One cell for every block and label, its sums such that no compression shrinks them."""
    columns = tuple(column.name for column in summed_columns(contract, peer))
    bins = len(contract.shared[0].edges or ()) + 1
    width, size, count = len(columns), len(contract.shared_columns), 2 * bins * bins
    codes, rows = np.repeat(np.indices((bins, bins)).reshape(2, -1).T, 2, axis=0), np.full(count, 50)
    sums = np.random.default_rng(0).normal(size=(count, width))
    cells = Cells(
        peer=peer,
        columns=columns,
        centre=np.zeros(width),
        scale=np.ones(width),
        codes=codes,
        labels=np.tile([-1, 1], bins * bins),
        rows=rows,
        sums=sums,
        present=np.broadcast_to(rows[:, None], sums.shape),
        shared=encoded_sums(contract, codes, rows),
        by_label=np.empty((0, 0, 0)),
    )
    private = np.broadcast_to(rows.sum() / 2 * np.eye(width), (2, width, width))
    cells = replace(cells, by_label=assemble(contract, cells, private, np.zeros((2, size, width + size))))
    return Part.of(Release(contract, Policy.exact(), cells, Spend(np.inf), 0))


@dataclass(frozen=True)
class Ready:
    """Hands out a part that already exists."""

    contract: Contract
    part: Part

    @property
    def contracts(self) -> tuple[str, ...]:
        return (self.contract.fingerprint,)

    def stage(self, kind: str, job: str, output: Path) -> str:
        return "released" if output.exists() else "nothing"

    def make(self, fingerprint: str, job: str, output: Path, model: Path | None) -> None:
        self.part.write(output)


def ready(contract: Contract) -> Work:
    return Ready(contract, big_part(contract))  # type: ignore[return-value]
