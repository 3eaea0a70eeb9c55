"""A part of many megabytes, and a peer's work that hands it out."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from radocraft.policy import Release
from scipy.sparse import csr_array

from radocraft.cells import Cells
from radocraft.contract import Contract
from radocraft.net.desk import Work
from radocraft.parts import Part

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
    """One cell for every block, full of noise that no compression shrinks."""
    columns = tuple(contract.peers[peer].features)
    bins = len(contract.shared[0].edges or ()) + 1
    blocks = bins * bins
    rng, size = np.random.default_rng(0), len(columns) + len(contract.shared_columns) + 1
    cells = Cells(
        peer=peer,
        columns=columns,
        centre=np.zeros(len(columns)),
        scale=np.ones(len(columns)),
        codes=np.repeat(np.indices((bins, bins)).reshape(2, -1).T, 2, axis=0),
        labels=np.tile([-1, 1], blocks),
        rows=np.full(2 * blocks, 50),
        sums=rng.normal(size=(2 * blocks, len(columns))),
        present=np.full((2 * blocks, len(columns)), 50),
        shared=csr_array((2 * blocks, len(contract.shared_columns))),
        moments=np.eye(size),
    )
    return Part.seal(Release(contract, cells, "none", "none", 1, 0, 0))


@dataclass(frozen=True)
class Ready:
    """Hands out a part that is there already."""

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
