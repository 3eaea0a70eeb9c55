"""Named grids of cells.

The paper runs all combinations of p and dim(J) in each domain's range. ``full``
does so where that is cheap and takes evenly spread values elsewhere; what is
left out is written in `_FULL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from radocraft.demo import Scaling
from radocraft.errors import StudyError
from radocraft.research.study._cell import Cell
from radocraft.research.study._domains import DOMAINS, Columns, Domain
from radocraft.research.study._methods import Encoding
from radocraft.research.study._scenarios import Corrupted, Setting

SETTINGS: tuple[tuple[Setting, float], ...] = (("vertical", 0.0), ("duplicates", 0.2), ("one-peer", 0.2))

SCALINGS: tuple[Scaling, ...] = ("standard", "min-max", "none")
ENCODINGS: tuple[Encoding, ...] = ("one-hot", "ordinal")


@dataclass(frozen=True)
class Preset:
    """A named grid and what it is for."""

    name: str
    purpose: str
    build: Callable[[], Iterator[Cell]]

    @property
    def cells(self) -> list[Cell]:
        """Its cells, quick domains and slow ones mixed so that an estimate of the time left is fair."""
        return list(self.build())

    def on(self, domains: Sequence[str]) -> list[Cell]:
        """Its cells on some domains only.

        Examples
        --------
        >>> len(PRESETS["smoke"].on(["wine"])), len(PRESETS["smoke"].cells)
        (3, 6)
        """
        if unknown := [name for name in domains if name not in DOMAINS]:
            raise StudyError(f"There is no domain '{unknown[0]}'. The domains are: {', '.join(DOMAINS)}.")
        return [cell for cell in self.cells if cell.domain in domains]


def cell_of(domain: Domain, peers: int, shared: int) -> Cell:
    """A cell at the domain's default binarisation and bins, with a seed of its own: every cell is a new draw."""
    return Cell(domain.name, peers, shared, domain.default, bins=domain.bins, seed=100 * peers + shared)


def as_in_the_paper(cell: Cell) -> Cell:
    """The same cell under the choices that come closest to the paper's own figures (see `docs/study.md`)."""
    columns: Columns = "paper" if cell.domain == "steelplates" else "plain"
    return replace(cell, scaling="min-max", intercept=False, encoding="ordinal", columns=columns)


# Values of p and dim(J) where not the paper's whole range is run.
_FULL: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "sonar": ((2, 4, 8, 16), (1, 2, 4, 8, 20)),
    "ionosphere": ((2, 3, 5, 7, 9), (1, 2, 3, 5, 7, 9)),
    "mice": ((2, 4, 8, 20), (1, 3, 6, 12)),
    "steelplates": ((2, 4, 8, 14), (1, 2, 3, 4, 5)),
    "statlog": ((2, 10, 30), (1, 3, 5)),
    "firmteacher": ((2, 4, 7), (1, 3, 7)),
    "phishing": ((2, 3, 5), (1, 2, 4)),
}
_BINS = (2, 3, 5, 6, 8, 10)


def _ranges(domain: Domain) -> tuple[Iterable[int], Iterable[int]]:
    whole = (range(domain.peers[0], domain.peers[1] + 1), range(domain.shared[0], domain.shared[1] + 1))
    return _FULL.get(domain.name, whole)


def _full() -> Iterator[Cell]:
    """Under choices like the paper's its two settings; under ours (VP) and every row at one peer; bins; (R)."""
    vertical, duplicates, one_peer = SETTINGS
    for domain in DOMAINS.values():
        for peers, shared in product(*_ranges(domain)):
            cell = cell_of(domain, peers, shared)
            for setting, share in (vertical, one_peer):
                yield replace(cell, setting=setting, share=share)
            for setting, share in (vertical, duplicates):
                yield as_in_the_paper(replace(cell, setting=setting, share=share))
        yield replace(cell_of(domain, 4, 3), setting="random", share=0.5)
    yield from _bins()


def _bins() -> Iterator[Cell]:
    for peers, shared, bins in product((2, 5, 9), (1, 3, 9), _BINS):
        cell = replace(cell_of(DOMAINS["ionosphere"], peers, shared), bins=bins)
        yield cell
        yield as_in_the_paper(cell)


def _quick() -> Iterator[Cell]:
    """Every domain at two corners of its range, in all three settings, five folds."""
    for domain in DOMAINS.values():
        for peers, shared in ((2, 1), (4, 3)):
            for setting, share in SETTINGS:
                yield replace(cell_of(domain, peers, shared), setting=setting, share=share, folds=5)
            yield replace(as_in_the_paper(cell_of(domain, peers, shared)), folds=5)


def _smoke() -> Iterator[Cell]:
    """Two small domains, a handful of cells: for tests."""
    for name in ("wine", "ionosphere"):
        for setting, share in SETTINGS:
            yield replace(cell_of(DOMAINS[name], 2, 2), setting=setting, share=share, folds=3)


def _grid44() -> Iterator[Cell]:
    """Eleven domains, two sizes each way, two seeds, with and without a row limit; peers tuned on the fine grid."""
    for seed, min_rows in product((0, 1), (1, 10)):
        yield from (replace(cell, min_rows=min_rows) for cell in _corners(seed))


def _grid44_seeds() -> Iterator[Cell]:
    """The same without a row limit for four seeds more, to see how much luck is in two."""
    for seed in range(2, 6):
        yield from _corners(seed)


def _corners(seed: int) -> Iterator[Cell]:
    for domain, peers, shared in product(DOMAINS.values(), (2, 4), (1, 3)):
        yield replace(cell_of(domain, peers, shared), bins=4, folds=5, seed=seed, gammas="fine")


def _settings() -> Iterator[Cell]:
    """Every reading of the paper's silent choices, peers and oracle only, where its best peers are found."""
    for domain in DOMAINS.values():
        corners = ((2, domain.shared[0]), (2, sum(domain.shared) // 2), (2, domain.shared[1]))
        variants: tuple[Columns, ...] = ("plain", "paper") if domain.name == "steelplates" else ("plain",)
        for binarisation, columns, (peers, shared) in product(domain.binarisations, variants, corners):
            cell = replace(cell_of(domain, peers, shared), binarisation=binarisation, columns=columns)
            for scaling, intercept, encoding in product(SCALINGS, (True, False), ENCODINGS):
                yield replace(cell, scaling=scaling, intercept=intercept, encoding=encoding, algorithms="peers")


def _grouped() -> Iterator[Cell]:
    """Domains with copies or repeated measurements: folds that tear them apart, and folds that do not."""
    for name in ("mice", "winered", "winewhite", "page", "phishing"):
        for peers, shared, grouped in product((2, 4), (1, 3), (False, True)):
            yield replace(cell_of(DOMAINS[name], peers, shared), grouped=grouped)


def _linkage() -> Iterator[Cell]:
    """Small cells of two peers, where entity resolution on bare codes finishes."""
    for name in ("wine", "ionosphere", "winered"):
        for shared in (1, 3):
            yield replace(cell_of(DOMAINS[name], 2, shared), folds=5, algorithms="linkage")


def _corruption() -> Iterator[Cell]:
    """Two peers, three shared features, up to a fifth of the second peer's signatures or labels wrong."""
    for name in ("wine", "sonar", "ionosphere", "mice", "winered"):
        cell = replace(cell_of(DOMAINS[name], 2, 3), folds=5, algorithms="linkage")
        yield cell
        wrongs: tuple[Corrupted, ...] = ("signatures", "labels")
        for corrupted, corruption in product(wrongs, (0.05, 0.1, 0.2)):
            yield replace(cell, corrupted=corrupted, corruption=corruption)


_ALL = (
    Preset("smoke", "two small domains, seconds: for tests", _smoke),
    Preset("quick", "every domain at two corners of its range, a few minutes", _quick),
    Preset("grid44", "every domain, p in {2, 4}, 1 and 3 shared features, two seeds, min_rows 1 and 10", _grid44),
    Preset("grid44-seeds", "grid44 without a row limit, for four other seeds", _grid44_seeds),
    Preset("full", "the paper's ranges (thinned where slow), all settings: about an hour on one core", _full),
    Preset("settings", "peers alone under every reading of the paper's silent choices", _settings),
    Preset("grouped", "folds that keep copies and repeated measurements together, beside folds that do not", _grouped),
    Preset("linkage", "small cells with the Splink pipeline beside the rest (needs the extra `linkage`)", _linkage),
    Preset("corruption", "5, 10 and 20 % of signatures or labels wrong at one of two peers, Splink too", _corruption),
)
PRESETS = {preset.name: preset for preset in _ALL}


def preset_named(name: str) -> Preset:
    """The preset of that name, or an error that lists the names there are."""
    if name not in PRESETS:
        raise StudyError(f"There is no preset '{name}'. The presets are: {', '.join(PRESETS)}.")
    return PRESETS[name]
