"""Named grids of cells.

The paper runs all combinations of p and dim(J) in each domain's range. ``authors``
does so but for the three largest ranges, ``full`` where that is cheap; they take evenly
spread values elsewhere. What is left out is written in `_AUTHORS` and `_FULL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from radocraft.errors import StudyError
from radocraft.research.study._cell import Cell
from radocraft.research.study._contest import CONTESTS, GENERATED
from radocraft.research.study._domains import DOMAINS, Domain
from radocraft.research.study._scenarios import Corrupted, Setting

SETTINGS: tuple[tuple[Setting, float], ...] = (("vertical", 0.0), ("duplicates", 0.2), ("one-peer", 0.2))
ORDERS = 10
TESTED = 60
PEOPLE = (10_000, 100_000, 1_000_000)


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
        (4, 8)
        """
        there = (*DOMAINS, GENERATED)
        if unknown := [name for name in domains if name not in there]:
            raise StudyError(f"There is no domain '{unknown[0]}'. The domains are: {', '.join(there)}.")
        return [cell for cell in self.cells if cell.domain in domains]


def cell_of(domain: Domain, peers: int, shared: int) -> Cell:
    """A cell at the domain's default binarisation and bins; every cell draws its features anew."""
    return Cell(domain.name, peers, shared, domain.default, bins=domain.bins, feature_order="per-cell")


def as_the_authors(domain: Domain, peers: int, shared: int, order: int) -> Cell:
    """A cell in the reading of the paper that comes closest to its claims, under one order of the features.

    Numeric classes are cut at their mean, but for statlog, of which it is class 1. Codes of shared features are
    standardised like all others, there is no constant, features that cannot be cut into four bins are not shared as
    long as there are others, and DRL is tuned by the loss over all sums of rados (see `docs/study.md`).
    """
    at_mean = "class-mean" in domain.binarisations and domain.name != "statlog"
    return Cell(
        domain.name,
        peers,
        shared,
        "class-mean" if at_mean else domain.default,
        columns="paper" if domain.name == "steelplates" else "plain",
        bins=domain.bins,
        seed=order,
        intercept=False,
        encoding="ordinal-standard",
        algorithms="paper",
        rado_score="all-sums",
        shareable="binnable",
    )


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
_AUTHORS = {name: _FULL[name] for name in ("sonar", "mice", "statlog")}
_BINS = (2, 3, 5, 6, 8, 10)

Ranges = tuple[Iterable[int], Iterable[int]]


def _ranges(domain: Domain, thinned: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]) -> Ranges:
    whole = (range(domain.peers[0], domain.peers[1] + 1), range(domain.shared[0], domain.shared[1] + 1))
    return thinned.get(domain.name, whole)


def _authors() -> Iterator[Cell]:
    """The paper's two settings over its ranges, and bins on ionosphere, under ten orders of the features."""
    for order in range(ORDERS):
        for domain in DOMAINS.values():
            for peers, shared in product(*_ranges(domain, _AUTHORS)):
                for setting, share in SETTINGS[:2]:
                    yield replace(as_the_authors(domain, peers, shared, order), setting=setting, share=share)
        for peers, shared, bins in product((2, 5, 9), (1, 3, 9), _BINS):
            yield replace(as_the_authors(DOMAINS["ionosphere"], peers, shared, order), bins=bins)


def _readings() -> Iterator[Cell]:
    """The authors' reading with one choice changed, where its claims are strongest."""
    for name, order in product(("page", "ionosphere", "steelplates", "firmteacher"), range(ORDERS // 2)):
        for peers, shared in product(*_ranges(DOMAINS[name], _FULL)):
            cell = as_the_authors(DOMAINS[name], peers, shared, order)
            yield cell
            yield replace(cell, intercept=True)
            yield replace(cell, encoding="ordinal")
            yield replace(cell, scaling="min-max")
            yield replace(cell, rado_score="drawn")
            yield replace(cell, gamma_scale="rows")
            yield replace(cell, gamma_scale="mean-block")
            yield replace(cell, feature_order="per-cell")
            yield replace(cell, shareable="any")


def _full() -> Iterator[Cell]:
    """(VP) and every row at one peer, under our choices; bins; (R)."""
    vertical, _, one_peer = SETTINGS
    for domain in DOMAINS.values():
        for peers, shared in product(*_ranges(domain, _FULL)):
            cell = cell_of(domain, peers, shared)
            for setting, share in (vertical, one_peer):
                yield replace(cell, setting=setting, share=share)
        yield replace(cell_of(domain, 4, 3), setting="random", share=0.5)
    for peers, shared, bins in product((2, 5, 9), (1, 3, 9), _BINS):
        yield replace(cell_of(DOMAINS["ionosphere"], peers, shared), bins=bins)


def _quick() -> Iterator[Cell]:
    """Every domain at two corners of its range, in all three settings, five folds."""
    for domain in DOMAINS.values():
        for peers, shared in ((2, 1), (4, 3)):
            for setting, share in SETTINGS:
                yield replace(cell_of(domain, peers, shared), setting=setting, share=share, folds=5)
            yield replace(as_the_authors(domain, peers, shared, order=0), folds=5)


def _smoke() -> Iterator[Cell]:
    """Two small domains, a handful of cells: for tests."""
    for name in ("wine", "ionosphere"):
        for setting, share in SETTINGS:
            yield replace(cell_of(DOMAINS[name], 2, 2), setting=setting, share=share, folds=3)
        yield replace(as_the_authors(DOMAINS[name], 2, 2, order=0), folds=3)


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
        yield Cell(domain.name, peers, shared, domain.default, folds=5, seed=seed, gammas="fine")


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


def _main() -> Iterator[Cell]:
    """Every domain, two and four peers, two draws of who holds what; two shared features of four bins."""
    for domain, peers, draw in product(DOMAINS.values(), (2, 4), (0, 1)):
        cell = Cell(domain.name, peers, 2, domain.default, folds=5, seed=draw, tested=TESTED)
        yield from (replace(cell, algorithms=algorithms) for algorithms in CONTESTS)


def _generated() -> Iterator[Cell]:
    """Generated people, ten thousand to a million, at two and four peers."""
    for people, peers in product(PEOPLE, (2, 4)):
        cell = Cell(GENERATED, peers, 3, "yes", people=people)
        yield from (replace(cell, algorithms=algorithms) for algorithms in CONTESTS)


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
    Preset(
        "authors", "the paper's experiment in the reading closest to it, under ten orders of the features", _authors
    ),
    Preset("readings", "the same with one choice changed at a time, on four domains", _readings),
    Preset("full", "the paper's ranges (thinned where slow) under our choices, two settings", _full),
    Preset("grouped", "folds that keep copies and repeated measurements together, beside folds that do not", _grouped),
    Preset("linkage", "small cells with the Splink pipeline beside the rest (needs the extra `linkage`)", _linkage),
    Preset("main", "the main table: today's rivals and ours, exact and through the gate, on 44 cells", _main),
    Preset("generated", "the same on ten thousand to a million generated people", _generated),
    Preset("corruption", "5, 10 and 20 % of signatures or labels wrong at one of two peers, Splink too", _corruption),
)
PRESETS = {preset.name: preset for preset in _ALL}


def preset_named(name: str) -> Preset:
    """The preset of that name, or an error that lists the names there are."""
    if name not in PRESETS:
        raise StudyError(f"There is no preset '{name}'. The presets are: {', '.join(PRESETS)}.")
    return PRESETS[name]
