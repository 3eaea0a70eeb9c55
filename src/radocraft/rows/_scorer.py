"""A peer's own scorer: its models, how their log-odds are calibrated, and how it reads the peer's columns.

It stays at the peer, and so does its file: it is made from rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, TypeAdapter

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract, Kind, Number
from radocraft.errors import MissingColumn
from radocraft.progress import Progress, quiet
from radocraft.rows._calibration import LinearCalibration, Performance, PlattCalibration, ReliabilityBin, raw_log_odds
from radocraft.rows._checks import listed
from radocraft.rows._chunks import Asking, Chunk, check_kept
from radocraft.rows._cleaning import cleaned
from radocraft.rows._encoding import Reader
from radocraft.rows._estimators import EstimatorInput, Target, given_form, raw_scores
from radocraft.rows._features import ScorerColumn
from radocraft.rows._folds import Deal, Lots, strata_of
from radocraft.rows._lots import Drawing, Lottery
from radocraft.rows._scorer_file import packed, read_scorer, unpacked, write_scorer
from radocraft.rows._workers import on_workers
from radocraft.rows.engines._base import Cluster, Source
from radocraft.rows.engines._opening import open_source


@dataclass(frozen=True)
class Scorer:
    """A peer's own fitted model, calibrated: it scores the peer's rows, and never leaves.

    Parameters
    ----------
    contract, peer
        What was agreed, and whose scorer this is.
    columns, form
        What the model is given.
    models
        One for each fold, and last the one fitted on all rows; none if scores come from elsewhere.
    maps
        How each of these is calibrated: one map, or one for each class.
    deal, lottery, group
        Which fold a row belongs to.
    performance, reliability
        How good it is out of fold, and its calibration curve (of each class, if there are several).
    rows
        How many rows it was fitted on.
    notes
        What its user should know.
    logit
        Of scores from elsewhere, whether they are probabilities.

    Examples
    --------
    >>> import radocraft as rc
    >>> agreed, tables = rc.example_peers(rows=2000)
    >>> spelled = agreed.model_dump(mode="json")
    >>> for peer, held in spelled["peers"].items():
    ...     held["features"] = {f"{peer}_score": {"kind": "score", "model": "linear"}}
    >>> contract, kept = rc.Contract.model_validate(spelled), []
    >>> part = rc.share(tables["bank"], contract, "bank", on_scorer=kept.append)
    >>> kept[0].score(tables["bank"]).column_names
    ['signature', 'bank_score']
    """

    contract: Contract
    peer: str
    columns: tuple[ScorerColumn, ...]
    form: EstimatorInput
    models: tuple[Any, ...]
    maps: tuple[tuple[PlattCalibration | LinearCalibration, ...], ...]
    deal: Deal
    lottery: Lottery
    group: str | None
    performance: Performance
    reliability: tuple[tuple[ReliabilityBin, ...], ...]
    rows: int
    notes: tuple[str, ...] = ()
    logit: bool = False

    @property
    def fingerprint(self) -> str:
        """The contract's."""
        return self.contract.fingerprint

    @property
    def target(self) -> Target:
        """What is predicted."""
        label = self.contract.label
        return Target(0 if isinstance(label, Number) else len(label.codes))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What its scores are called: the feature's name, of several classes with each one's."""
        name = self.contract.score_of(self.peer)[0]
        if self.target.classes <= 2:
            return (name,)
        return tuple(f"{name}={value}" for value in self.contract.label.names)

    def classes(self, labels: Ints) -> Ints:
        """The labels' places among the contract's codes."""
        return np.searchsorted(np.array(self.contract.label.codes), labels)

    def raw(self, at: int, matrix: Floats) -> Floats:
        """What one of the models says."""
        if not self.models:
            scores = matrix[:, 0]
            return np.where(np.isnan(scores), np.nan, raw_log_odds(scores)) if self.logit else scores
        return raw_scores(self.models[at], given_form(matrix, self.columns, self.form), self.target)

    def calibrated(self, at: int, matrix: Floats) -> Floats:
        """... and what that means."""
        raw, maps = self.raw(at, matrix), self.maps[at]
        if not maps:
            return raw
        if raw.ndim == 1:
            return maps[0](raw)
        return np.column_stack([each(column) for each, column in zip(maps, raw.T, strict=True)])

    def by_fold(self, chunk: Chunk, fold: Ints) -> Floats:
        """Scores by models that have seen no row of the row's fold."""
        shape = (len(chunk),) if self.target.classes <= 2 else (len(chunk), self.target.classes)
        out = np.empty(shape)
        for at in range(self.deal.folds):
            rows = np.flatnonzero(fold == at)
            if len(rows):
                out[rows] = self.calibrated(at, chunk.matrix[rows])
        return out

    def dealt(self, chunk: Chunk, drawing: Drawing) -> Ints:
        """The fold of each of the next rows."""
        classes = self.classes(chunk.labels)
        return self.fold_of(drawing.lots(chunk, classes), chunk.signatures, classes)

    def fold_of(self, lot: Lots, signatures: Ints, classes: Ints) -> Ints:
        """The fold of rows with these lots."""
        if self.lottery.by_group:
            nothing = np.zeros_like(classes)
            return self.deal.fold(lot, nothing, nothing)
        return self.deal.fold(lot, strata_of(signatures, classes, len(self.contract.label.codes)), classes)

    def score(self, data: Any, *, keep: tuple[str, ...] = (), progress: Progress = quiet) -> pa.Table:
        """Score rows that are new: by the model that was fitted on all rows.

        Parameters
        ----------
        data
            Where the rows are; see `open_source`. The label need not be there.
        keep
            Columns to hand through, such as a row's key.
        progress
            Called as the work goes on.
        """
        source = open_source(data)
        batches = list(self.score_batches(source, keep=keep, progress=progress))
        return pa.Table.from_batches(batches)

    def score_batches(
        self, source: Source, *, keep: tuple[str, ...] = (), progress: Progress = quiet
    ) -> Iterator[pa.RecordBatch]:
        """`score` in pieces, for tables larger than memory: columns to keep, place in the agreed grid, scores."""
        check_kept(keep, source)
        reader, columns, source = self._found(source)
        asking = Asking(reader, columns, keep=keep, with_label=False)
        if isinstance(source, Cluster):
            yield from on_workers(source, asking, partial(self.new_rows, keep), progress)
            return
        for chunk in asking.chunks(source, progress, "scoring", source.row_count()):
            yield self.new_rows(keep, chunk)

    def new_rows(self, keep: tuple[str, ...], chunk: Chunk) -> pa.RecordBatch:
        """Columns to keep, place in the agreed grid, and scores."""
        calibrated = self.calibrated(len(self.maps) - 1, chunk.matrix)
        scores = [calibrated] if calibrated.ndim == 1 else list(calibrated.T)
        arrays = [*chunk.kept.columns, pa.array(chunk.signatures), *map(pa.array, scores)]
        return pa.RecordBatch.from_arrays(arrays, names=[*keep, "signature", *self.names])

    def save(self, path: str | Path) -> str:
        """Write it to a file that its owner alone can read; the SHA-256 of what it holds comes back."""
        return write_scorer(path, self._described(), self.models)

    @classmethod
    def load(cls, path: str | Path, *, trusted: Sequence[str] = ()) -> Scorer:
        """Read one back, which never runs code that is in the file.

        Parameters
        ----------
        path
            The file.
        trusted
            Types of yours that may be in it, by their full names, besides those of scikit-learn, LightGBM and XGBoost.
        """
        return read_scorer(path, trusted, cls._of)

    def _described(self) -> dict[str, Any]:
        """All but the models, for a file."""
        return {
            "contract": self.contract.model_dump(mode="json"),
            "fingerprint": self.fingerprint,
            "peer": self.peer,
            "columns": [asdict(column) for column in self.columns],
            "form": self.form,
            "maps": [[{"kind": type(each).__name__} | asdict(each) for each in maps] for maps in self.maps],
            "folds": self.deal.folds,
            "strata": self.deal.strata.tolist(),
            "cuts": packed(self.deal.cuts),
            "seed": self.lottery.seed,
            "by_group": self.lottery.by_group,
            "equal_are_one": self.lottery.equal_are_one,
            "repeated": packed(self.lottery.repeated),
            "group": self.group,
            "performance": asdict(self.performance),
            "reliability": [[asdict(each) for each in curve] for curve in self.reliability],
            "rows": self.rows,
            "notes": list(self.notes),
            "logit": self.logit,
        }

    @classmethod
    def _of(cls, held: dict[str, Any], models: tuple[Any, ...]) -> Scorer:
        """From what a file holds."""
        kept = _KEPT.validate_python(held)
        scorer = cls(
            contract=kept.contract,
            peer=kept.peer,
            columns=kept.columns,
            form=kept.form,
            models=models,
            maps=tuple(tuple(each.map() for each in maps) for maps in kept.maps),
            deal=Deal(kept.folds, np.array(kept.strata), unpacked(kept.cuts).reshape(-1, kept.folds - 1)),
            lottery=Lottery(kept.seed, kept.by_group, kept.equal_are_one, unpacked(kept.repeated)),
            group=kept.group,
            performance=kept.performance,
            reliability=kept.reliability,
            rows=kept.rows,
            notes=kept.notes,
            logit=kept.logit,
        )
        if wrong := [*scorer._contradictions(kept.fingerprint)]:
            raise ValueError(wrong[0])
        return scorer

    def _contradictions(self, fingerprint: str) -> Iterator[str]:
        """What cannot be, though each entry by itself could."""
        folds, classes = self.deal.folds, self.target.classes
        if self.fingerprint != fingerprint or self.peer not in self.contract.peers or not self.contract.of_scores:
            yield "another contract"
        if {len(self.maps), len(self.models) or folds + 1} != {folds + 1}:
            yield "another number of folds"
        if {len(maps) for maps in self.maps} not in ([{classes}] if classes > 2 else [{1}, {0}]):
            yield "another number of classes"
        if len(self.deal.cuts) != len(self.deal.strata) + (
            1 if self.lottery.by_group else len(self.contract.label.codes)
        ):
            yield "another number of strata"
        if self.lottery.by_group != (self.group is not None):
            yield "groups without their column"
        if not self.models and len(self.columns) != 1:
            yield "scores from several columns"
        if {getattr(model, "n_features_in_", len(self.columns)) for model in self.models} - {len(self.columns)}:
            yield "models of other columns"

    def reads(self, source: Source) -> bool:
        """Whether a table has all of its columns."""
        return not self._lacking(source.kinds())

    def lacks(self, source: Source) -> str:
        """What to say where a table has not."""
        return self._lacks(source, self._lacking(source.kinds()))

    def check_own(self, source: Source) -> None:
        """The peer's table must have all of the model's columns, under their own names."""
        kinds = source.kinds()
        if lacking := [column.name for column in self.columns if column.name not in kinds]:
            raise MissingColumn(self._lacks(source, lacking))

    def _lacks(self, source: Source, names: list[str]) -> str:
        return (
            f"'{source.name}' lacks {listed(names)}, which the scorer of '{self.peer}' was fitted on. "
            "Add them (empty cells are allowed), or fit a scorer without them."
        )

    def _here(self, kinds: dict[str, Kind]) -> dict[str, str]:
        """Its columns, and what they are called in a table of new rows: as at the peer, or as in the contract."""
        agreed = {theirs: name for name, theirs in self.contract.peers[self.peer].columns.items()}
        shared = [self.contract.column_of(self.peer, shared.name) for shared in self.contract.shared]
        wanted = dict.fromkeys([*shared, *(column.name for column in self.columns)])
        return {name: name if name in kinds else agreed.get(name, name) for name in wanted}

    def _lacking(self, kinds: dict[str, Kind]) -> list[str]:
        return [name for name, here in self._here(kinds).items() if here not in kinds]

    def _found(self, source: Source) -> tuple[Reader, tuple[ScorerColumn, ...], Source]:
        """How a table of new rows is read, and its rows as they are then."""
        kinds, peer = source.kinds(), self.contract.peers[self.peer]
        here = self._here(kinds)
        if self._lacking(kinds):
            raise MissingColumn(self.lacks(source))
        columns = {name: here.get(theirs, theirs) for name, theirs in peer.columns.items()}
        cleaning = {here[theirs]: rule for theirs, rule in peer.cleaning.items() if theirs in here}
        held = peer.model_copy(update={"columns": columns, "cleaning": cleaning})
        contract = self.contract.model_copy(update={"peers": {**self.contract.peers, self.peer: held}})
        source = cleaned(source, contract, self.peer, here.values())
        reader = Reader(contract, self.peer, source.kinds())
        return reader, tuple(replace(column, name=here[column.name]) for column in self.columns), source


@dataclass(frozen=True)
class _KeptMap:
    """A map of calibration in a file."""

    kind: Literal["PlattCalibration", "LinearCalibration"]
    slope: float
    intercept: float
    missing: float

    def map(self) -> PlattCalibration | LinearCalibration:
        """What it was."""
        kind = PlattCalibration if self.kind == PlattCalibration.__name__ else LinearCalibration
        return kind(self.slope, self.intercept, self.missing)


@dataclass(frozen=True)
class _Kept:
    """All but the models, as a file holds it; see `Scorer._described`."""

    contract: Contract
    fingerprint: str
    peer: str
    columns: tuple[ScorerColumn, ...]
    form: EstimatorInput
    maps: tuple[tuple[_KeptMap, ...], ...]
    folds: Annotated[int, Field(ge=2)]
    strata: tuple[int, ...]
    cuts: str
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    by_group: bool
    equal_are_one: bool
    repeated: str
    group: str | None
    performance: Performance
    reliability: tuple[tuple[ReliabilityBin, ...], ...]
    rows: int
    notes: tuple[str, ...]
    logit: bool


_KEPT = TypeAdapter(_Kept)
