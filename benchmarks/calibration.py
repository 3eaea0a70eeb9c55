"""Told and true: what the outlook of score models says beside what new rows show.

    RADOCRAFT_DATA=... python benchmarks/calibration.py [cells] [copies] [generated] [growth] [--draws 2]
        [--kept DIRECTORY] [--figure PAGE FILE]

`cells`: the paper's 44 cells (benchmarks/scored.py). `copies`: of the domains that hold the same rows several times
over, the same cells with all copies of a row in one fold, so that no test row was learned by heart. `generated`: tables
with a known law (radocraft.research.study._generator), of seeds that nothing was designed on. `growth`: drawn scores of
1,000 to 1,000,000 rows. All through the default gate, with a fresh key. Every section prints its page's table;
--figure draws what a page's tables say.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.stats import norm
from scored import ScoredFold, _scored, agreed, cells_of, scored_folds
from scores import linked, released

from radocraft import Contract, Policy
from radocraft.gate import Noise, release_scores
from radocraft.learning._correlation import correlate
from radocraft.learning._head import fit_head
from radocraft.learning._outlook import FEWEST_ROWS, Quality, influences, outlook_of
from radocraft.learning._virtual import Merged
from radocraft.model import Interval
from radocraft.research.study import _generator as generator
from radocraft.research.study._domains import DOMAINS

MEASURES = ("error", "auc", "log_loss")
COPIES = ("winered", "winewhite", "phishing")
ROWS, TESTED = 20_000, 40_000
GENERATED = tuple(
    (peers, positive, relation)
    for positive in (0.05, 0.1, 0.2, 0.4)
    for peers, relation in ((2, -0.4), (2, 0.0), (3, 0.2), (2, 0.5), (4, 0.8))
)
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
GROWN = 300_000


@dataclass(frozen=True)
class Told:
    """One outlook beside the truth: by measure what is told, from, to, true and the standard error of the truth."""

    name: str
    section: str
    told: np.ndarray  # (measures, 5)
    gain: np.ndarray  # of log loss: told, from, to, true

    @property
    def ends(self) -> np.ndarray:
        """The interval, the test rows' own error included, (measures, 2)."""
        value, low, high, _, error = self.told.T
        sides = np.array([value - np.hypot(value - low, 2 * error), value + np.hypot(high - value, 2 * error)]).T
        return np.asarray(np.clip(sides, 0.0, [[1.0], [1.0], [np.inf]]))

    @property
    def held(self) -> np.ndarray:
        """Whether it holds the truth, by measure."""
        return (self.ends[:, 0] <= self.told[:, 3]) & (self.told[:, 3] <= self.ends[:, 1])


def tell(fold: ScoredFold, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray] | None:
    """(told, gain) of one draw of key and noise; None where nothing is told."""
    if len(fold.labels) < FEWEST_ROWS:
        return None
    merged = released(fold, rng, Policy(), keyed=True)
    correlation = correlate(merged)
    head = fit_head(merged, correlation)
    outlook = outlook_of(merged, [head], correlation)
    if outlook is None:
        return None
    rows = np.column_stack([fold.new, merged.log_odds[fold.places(fold.new_codes)]])
    each = influences(head.log_odds(rows), fold.new_labels)
    true, variance = each.mean(axis=0), each.var(axis=0) / len(each)
    told = [[*ends(getattr(outlook, name)), true[at], variance[at]] for at, name in enumerate(MEASURES)]
    alone = Quality.of(fold.new[:, merged.names.index(outlook.best_peer)], fold.new_labels)
    return np.array(told), np.array([*ends(outlook.gain.log_loss), alone.log_loss - true[2]])


def ends(interval: Interval) -> tuple[float, float, float]:
    """Value, low, high."""
    return interval.value, interval.low, interval.high


def over_folds(name: str, section: str, folds: Iterator[ScoredFold], seed: int) -> Told | None:
    """Means over the folds of a cell; its test rows are all of theirs."""
    rng, found = np.random.default_rng([seed, 18]), []
    for fold in folds:
        if (one := tell(fold, rng)) is None:
            return None
        found.append(one)
    told = np.mean([each for each, _ in found], axis=0)
    told[:, 4] = np.sqrt(told[:, 4] / len(found))
    return Told(name, section, told, np.mean([gain for _, gain in found], axis=0))


def cells(kept: Path | None, draws: int) -> Iterator[Told | str]:
    """The 44 cells, or the name of one of which nothing is told."""
    for number, cell in enumerate(cells_of([*DOMAINS])):
        if cell.seed >= draws:
            continue
        name = f"{cell.domain}, {cell.peers} peers, draw {cell.seed}"
        yield over_folds(name, "cells", scored_folds(cell, kept), number) or name


def copies(kept: Path | None, draws: int) -> Iterator[Told | str]:
    """Cells of the domains with copies, all copies of a row in one fold."""
    for number, cell in enumerate(cells_of([*COPIES])):
        if cell.seed >= draws:
            continue
        name = f"{cell.domain}, {cell.peers} peers, draw {cell.seed}"
        together = replace(cell, grouped=True)
        yield over_folds(name, "copies", scored_folds(together, kept and kept / "grouped"), number) or name


def generated(kept: Path | None, _: int) -> Iterator[Told | str]:
    """Generated tables, each peer's own boosting fitted."""
    for number, (peers, positive, relation) in enumerate(GENERATED):
        name = f"{ROWS:,} rows, {peers} peers, {positive:.0%} positive, relation {relation:g}"
        fold = generated_fold(peers, positive, relation, 100 + number, kept)
        yield over_folds(name, "generated", iter([fold]), number) or name


def generated_fold(peers: int, positive: float, relation: float, seed: int, kept: Path | None) -> ScoredFold:
    """Peers' models of a generated table, and their scores of other people."""
    file = None if kept is None else kept / f"generated-{peers}-{positive}-{relation}-{seed}.npz"
    if file is not None and file.exists():
        with np.load(file) as held:
            return ScoredFold(**{name: held[name] for name in held.files})
    drawn = [
        _people(generator.generate_peers(rows, peers=peers, positive=positive, relation=relation, seed=seed + more))
        for rows, more in ((ROWS, 0), (TESTED, 10_000))
    ]
    contract = agreed(peers, [5, 4, 1]).model_copy(update={"key": None})
    columns = [_scored(contract, f"p{at}", *(_own(*people, at) for people in drawn)) for at in range(peers)]
    (_, codes, labels), (_, new_codes, new_labels) = drawn
    scores, new = (np.column_stack(each) for each in zip(*columns, strict=True))
    none = np.zeros(TESTED)  # nothing is learned from joined tables here
    fold = ScoredFold(codes, labels, scores, new_codes, new_labels, new, np.zeros_like(new), none, none)
    if file is not None:
        np.savez_compressed(file, **vars(fold))
    return fold


def _people(drawn: generator.GeneratedPeers) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """The joined table, codes of the shared features, labels."""
    held = drawn.joined
    region = np.array([generator.REGIONS.index(name) for name in held["region"].to_pylist()])
    band = np.searchsorted(generator.AGES[1:-1], held["age"].to_numpy(), side="right")
    sex = np.array([generator.SEXES.index(name) for name in held["sex"].to_pylist()])
    labels = np.array([label == "yes" for label in held["label"].to_pylist()]).astype(np.int64)
    return held, np.column_stack([region, band, sex]), labels


def _own(held: pa.Table, codes: np.ndarray, labels: np.ndarray, peer: int) -> pa.Table:
    """What one peer holds of them."""
    columns = {f"s{at}": column.astype(np.float64) for at, column in enumerate(codes.T)}
    columns |= {name: held[name] for name in held.column_names if name.startswith(f"peer{peer + 1}_")}
    return pa.table({**columns, "y": labels})


HEAD = (
    "| | error told | true | AUC told | true | log loss told | true | all held |",
    "|---|---|---|---|---|---|---|---|",
)


def line(one: Told) -> str:
    """One row of a table."""
    (error, area, loss), ends = one.told, one.ends
    return (
        f"| {one.name} | {100 * error[0]:.1f} ({100 * ends[0, 0]:.1f} to {100 * ends[0, 1]:.1f}) | "
        f"{100 * error[3]:.1f} | {area[0]:.3f} ({ends[1, 0]:.3f} to {ends[1, 1]:.3f}) | {area[3]:.3f} | "
        f"{loss[0]:.3f} ({ends[2, 0]:.3f} to {ends[2, 1]:.3f}) | {loss[3]:.3f} | "
        f"{'yes' if one.held.all() else 'no'} |"
    )


def summary(found: list[Told], untold: list[str]) -> Iterator[str]:
    """What a table comes to."""
    off, held = np.array([np.abs(one.told[:, 0] - one.told[:, 3]) for one in found]), np.array([o.held for o in found])
    mean, most = off.mean(axis=0), off.max(axis=0)
    yield ""
    yield f"{len(found)} told, {len(untold)} not told (fewer than 300 rows)."
    yield (
        f"Off by, on average (at most): error {100 * mean[0]:.2f} ({100 * most[0]:.2f}) points, AUC {mean[1]:.4f} "
        f"({most[1]:.4f}), log loss {mean[2]:.4f} ({most[2]:.4f})."
    )
    error, area, loss = map(_share, held.T)
    yield f"Intervals hold the truth: error {error}, AUC {area}, log loss {loss}."
    gains = np.array([one.gain for one in found])
    sure = (gains[:, 1] > 0) | (gains[:, 2] < 0)
    right = np.sign(gains[sure, 0]) == np.sign(gains[sure, 3])
    yield f"Gain over the best peer: told apart from none in {_share(sure)}, with the right sign in {_share(right)}."


def _share(truths: np.ndarray) -> str:
    return f"{truths.sum()} of {len(truths)}"


def growth() -> Iterator[str]:
    """The relation's error and the gap to the logistic on joined scores, by rows."""
    yield "| rows | groups | relation | estimate | standard error | times root of groups | gap, points of error |"
    yield "|---|---|---|---|---|---|---|"
    for rows in SIZES:
        found = [grown(rows, draw) for draw in range(max(1, min(4, 100_000 // rows)))]
        groups, true, mean, error, gap = np.mean(found, axis=0)
        yield (
            f"| {rows:,} | {groups:,.0f} | {true:.3f} | {mean:.3f} | {error:.4f} | {error * groups**0.5:.2f} | "
            f"{100 * gap:.3f} |"
        )


def grown(rows: int, seed: int, positive: float = 0.3, relation: float = 0.5) -> tuple[float, ...]:
    """Groups, relation of the scores (true, estimate, standard error) and gap in error, of scores drawn at random."""
    contract = _long_key()
    known, new = (drawn_scores(count, positive, relation, [seed, rows, count]) for count in (rows, GROWN))
    none = np.zeros(len(new[1]))  # nothing is learned from joined tables here
    fold = ScoredFold(*known[:3], *new[:3], np.zeros_like(new[2]), none, none)
    places, keys = fold.places(fold.codes), np.random.default_rng([seed, 5]).integers(0, contract.key.values, rows)
    cells = [
        release_scores(
            contract,
            f"p{at}",
            signatures=places,
            labels=2 * fold.labels - 1,
            scores=column,
            keys=keys,
            noise=Noise.seeded("grown", rows, seed, at),
        ).cells
        for at, column in enumerate(fold.scores.T)
    ]
    merged = Merged(contract, tuple(cells))
    correlation = correlate(merged)
    head = fit_head(merged, correlation)
    features = np.column_stack([fold.new, merged.log_odds[fold.places(fold.new_codes)]])
    gap = np.mean((head.log_odds(features) > 0) != fold.new_labels) - np.mean((linked(fold) > 0) != fold.new_labels)
    groups = sum(len(sums) for sums in cells[0].groups)
    inside = np.mean([np.corrcoef(known[3][known[1] == label].T)[0, 1] for label in (0, 1)])
    return float(groups), float(inside), correlation.mean[0, 1], correlation.error[0, 1], float(gap)


def _long_key() -> Contract:
    """A key with a hundred thousand values, hashed."""
    tree = agreed(2, [5, 4, 1]).model_dump(mode="json", exclude_none=True)
    return Contract.model_validate({**tree, "key": [{"name": "number", "hash": 100_000, "secret": "0" * 64}]})


def drawn_scores(
    rows: int, positive: float, relation: float, seed: list[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Codes, labels, both peers' true log-odds of generated people, and these without what block they are in tells."""
    rng = np.random.default_rng(seed)
    people = generator._People.drawn(rows, positive, rng)
    common, odds = rng.normal(size=(rows, 2)), generator.signature_log_odds(positive)
    odds = odds[people.region, people.band, people.sex]
    scores, inside = [], []
    for at in range(2):
        factors = people.factors(at, common, relation, rng)
        shift = generator._SHIFTS[at] * (1.0 + people.band / 8.0)[:, None]
        low, high = generator._SPREADS
        told = (norm.logpdf(factors, shift, high) - norm.logpdf(factors, 0.0, low)).sum(axis=1)
        scores.append(np.clip(odds + told, -6, 6))
        block = np.unique(
            np.column_stack([people.region, people.band, people.sex, people.label]), axis=0, return_inverse=True
        )[1].ravel()
        means = np.bincount(block, scores[-1]) / np.bincount(block)
        inside.append(scores[-1] - means[block])
    codes = np.column_stack([people.region, people.band, people.sex])
    return codes, people.label, np.column_stack(scores), np.column_stack(inside)


def points(page: Path) -> dict[str, np.ndarray]:
    """What a page's tables say, by section: (cells, measures, told and from and to and true)."""
    found: dict[str, list[list[float]]] = {}
    section = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## .*`(\w+)`", line):
            section = heading[1]
        columns = line.split("|")[2:-2]
        numbers = [float(number) for column in columns for number in re.findall(r"\d+\.\d+", column)]
        if len(numbers) == 4 * len(MEASURES):
            found.setdefault(section, []).append(numbers)
    return {name: np.array(rows).reshape(-1, len(MEASURES), 4) for name, rows in found.items()}


def draw(page: Path, file: Path) -> None:
    """What a page's tables say as a scatter: told against true, with intervals."""
    import matplotlib as mpl  # noqa: PLC0415 - only here

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend

    from radocraft.pages import LIGHT  # noqa: PLC0415

    looks = {
        "cells": (LIGHT.accent, "the paper's domains"),
        "copies": (LIGHT.muted, "the same, copies of a row kept together"),
        "generated": (LIGHT.ink, "generated tables"),
    }
    figure, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    for at, (panel, name) in enumerate(zip(panels, ("error, %", "AUC", "log loss"), strict=True)):
        for section, each in points(page).items():
            told, low, high, true = each[:, at].T
            colour, words = looks[section]
            off = np.array([told - low, high - told]).clip(0.0)
            panel.errorbar(true, told, yerr=off, fmt="o", ms=3, lw=0.7, color=colour, label=words)
        ends = panel.get_xlim()
        panel.plot(ends, ends, lw=0.7, color=LIGHT.muted, ls="--", zorder=0)
        panel.set(xlabel=f"{name}: true on new rows", ylabel="told")
    panels[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(file, dpi=110)
    print(f"Drew {file} from {page}.")


def draw_growth(page: Path, file: Path) -> None:
    """What a page's table of growth says."""
    import matplotlib as mpl  # noqa: PLC0415 - only here

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend

    from radocraft.pages import LIGHT  # noqa: PLC0415

    text = page.read_text(encoding="utf-8").split("`growth`")[1]
    lines = re.findall(r"^\| [\d,]+ \|.*$", text, flags=re.MULTILINE)
    table = np.array([[float(word.replace(",", "")) for word in line.split("|")[1:-1]] for line in lines])
    rows, groups, error, gap = table[:, [0, 1, 4, 6]].T
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.loglog(groups, error, "o-", ms=4, lw=0.9, color=LIGHT.accent)
    left.loglog(groups, error[-1] * (groups[-1] / groups) ** 0.5, "--", lw=0.7, color=LIGHT.muted)
    left.set(xlabel="groups of the key", ylabel="standard error of the relation")
    right.semilogx(rows, gap, "o-", ms=4, lw=0.9, color=LIGHT.accent)
    right.axhline(0.0, ls="--", lw=0.7, color=LIGHT.muted)
    right.set(xlabel="rows", ylabel="gap to joined scores, points of error")
    figure.savefig(file, dpi=110)
    print(f"Drew {file} from {page}.")


def main() -> None:
    """Print the sections asked for."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("sections", nargs="*", help="cells, copies, generated, growth")
    wanted.add_argument("--kept", type=Path, help="where fitted scores are kept")
    wanted.add_argument("--figure", type=Path, nargs=2, help="a page with these tables, and where they are drawn")
    wanted.add_argument("--draws", type=int, default=2, help="draws of who holds what, of the paper's domains")
    given = wanted.parse_args()
    for name, section in (("cells", cells), ("copies", copies), ("generated", generated)):
        if name in given.sections:
            print(f"\n## {name}\n", *HEAD, sep="\n", flush=True)
            told: list[Told] = []
            untold: list[str] = []
            for one in section(given.kept, given.draws):
                if isinstance(one, str):
                    untold.append(one)
                else:
                    told.append(one)
                    print(line(one), flush=True)
            print(*summary(told, untold), sep="\n", flush=True)
    if "growth" in given.sections:
        print("\n## growth\n", *growth(), sep="\n", flush=True)
    if given.figure is not None:
        page, file = given.figure
        draw(page, file)
        draw_growth(page, file.with_name("growth.png"))


if __name__ == "__main__":
    main()
