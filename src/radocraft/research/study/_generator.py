"""Large tables with a known truth: census-like people, at as many peers as asked for.

The law depends on ``peers``, ``positive`` and ``relation`` alone; the seed draws
people from it, so another seed gives new people to test on. In the order of the draws:

1. region (6), age band (5) and sex (2): the shared features, 60 signatures of unequal size;
2. the label, by log-odds of the signature that meet the positive rate;
3. at every peer j two hidden factors, with t common to all peers and e the peer's,

       f_jk = shift_jk y (1 + band / 8) + spread_y (sqrt(relation) t_k + sqrt(1 - relation) e_jk),

   so that inside a block the factors of two peers have the correlation ``relation``, and
   at 0 the peers' columns are independent inside blocks; below 0 (two peers only) the
   second peer has sqrt(-relation) and -t;
4. nine columns from them: a skewed amount, gains that most lack, counts, years, a flag,
   and categories of 5, 12 and 50 values; some values are missing;
5. a birthday that tells nothing of the rest: the neutral key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.errors import StudyError

Kind = Literal["numeric", "spline", "score"]

REGIONS, REGION_SHARES = ("north", "east", "south", "west", "coast", "isles"), (0.3, 0.25, 0.2, 0.13, 0.08, 0.04)
AGES, AGE_SHARES = (18, 30, 40, 50, 65, 90), (0.22, 0.2, 0.2, 0.23, 0.15)
SEXES, SEX_SHARES = ("f", "m"), (0.52, 0.48)
STATUSES = tuple(f"status{at}" for at in range(5))
TRADES = tuple(f"trade{at:02d}" for at in range(12))
PLACES = tuple(f"place{at:02d}" for at in range(50))
_LEAP_YEAR, _DAYS = np.datetime64("2000-01-01"), 366
_SHIFTS = np.array([[0.8, 0.5], [0.6, 0.6], [0.4, 0.7], [0.7, 0.3]])
_SPREADS = np.array([1.0, 1.25])
_MISSING = 0.03


@dataclass(frozen=True)
class GeneratedPeers:
    """What every peer holds, and the joined table that nobody does.

    Parameters
    ----------
    joined
        All columns of all peers, one row for each person.
    tables
        By peer its columns, the shared features, the label and the key, each in an order of its own.
    """

    joined: pa.Table
    tables: dict[str, pa.Table]

    def contract(self, kind: Kind = "numeric") -> Contract:
        """The contract over all columns (numbers as they are, or as splines), or over one score for each peer."""
        return contract_of(tuple(self.tables), kind)


def generate_peers(
    rows: int, *, peers: int = 2, positive: float = 0.2, relation: float = 0.3, seed: int = 0
) -> GeneratedPeers:
    """Draw people and deal their columns to peers.

    Parameters
    ----------
    rows
        How many people; all peers hold all of them.
    peers
        How many peers, called ``peer1`` and so on.
    positive
        The share of people with the label "yes".
    relation
        The correlation of the peers' hidden factors inside blocks, below 1; with two peers from above -1, else from 0.
    seed
        Which people; the law they are drawn from does not depend on it.

    Examples
    --------
    >>> drawn = generate_peers(1000, positive=0.1)
    >>> drawn.joined.num_rows, list(drawn.tables)
    (1000, ['peer1', 'peer2'])
    >>> drawn.tables["peer2"].column_names[:7]
    ['label', 'region', 'age', 'sex', 'birthday', 'peer2_amount', 'peer2_gains']
    >>> drawn.contract("score").key.values
    366
    """
    least = -1.0 if peers == 2 else 0.0
    if rows < 1 or peers < 2 or not 0.0 < positive < 1.0 or not (least < relation < 1.0 or relation == 0.0):
        raise StudyError(
            "Generated tables need a row, two peers, a positive rate between 0 and 1 and a relation from 0 to below 1 "
            f"(above -1 with two peers), not {rows}, {peers}, {positive} and {relation}."
        )
    people = _People.drawn(rows, positive, np.random.default_rng([seed, 0]))
    common = np.random.default_rng([seed, 1]).normal(size=(rows, 2))
    columns = people.columns()
    tables = {}
    for at in range(peers):
        rng = np.random.default_rng([seed, 2, at])
        private = _private(f"peer{at + 1}", people.factors(at, common, relation, rng), at, rng)
        held = pa.table({**people.columns(), **private})
        tables[f"peer{at + 1}"] = held.take(pa.array(rng.permutation(rows)))
        columns |= private
    return GeneratedPeers(pa.table(columns), tables)


@dataclass(frozen=True)
class _People:
    """What is known of people everywhere: codes of region, age band and sex, the age, the label (0 or 1), the key."""

    region: Ints
    band: Ints
    sex: Ints
    age: Ints
    label: Ints
    birthday: Ints

    @classmethod
    def drawn(cls, rows: int, positive: float, rng: np.random.Generator) -> _People:
        region, band, sex = (_codes(shares, rows, rng) for shares in (REGION_SHARES, AGE_SHARES, SEX_SHARES))
        age = rng.integers(np.array(AGES)[band], np.array(AGES)[band + 1])
        label = rng.random(rows) < expit(signature_log_odds(positive)[region, band, sex])
        return cls(region, band, sex, age, label.astype(np.int64), rng.integers(0, _DAYS, rows))

    def columns(self) -> dict[str, pa.Array]:
        """As columns of a table."""
        return {
            "label": _words(("no", "yes"), self.label),
            "region": _words(REGIONS, self.region),
            "age": pa.array(self.age),
            "sex": _words(SEXES, self.sex),
            "birthday": pa.array(_LEAP_YEAR + self.birthday),
        }

    def factors(self, peer: int, common: Floats, relation: float, rng: np.random.Generator) -> Floats:
        """The hidden factors of one peer; see the module's docstring."""
        part = -1.0 if relation < 0.0 and peer else 1.0
        noise = part * np.sqrt(abs(relation)) * common + np.sqrt(1.0 - abs(relation)) * rng.normal(size=common.shape)
        shift = _SHIFTS[peer % len(_SHIFTS)] * (self.label * (1.0 + self.band / 8.0))[:, None]
        return np.asarray(shift + _SPREADS[self.label][:, None] * noise, dtype=np.float64)


def _codes(shares: tuple[float, ...], rows: int, rng: np.random.Generator) -> Ints:
    return np.searchsorted(np.cumsum(shares)[:-1], rng.random(rows), side="right").astype(np.int64)


def signature_log_odds(positive: float) -> Floats:
    """Log-odds of the label by region, age band and sex, at this positive rate over everybody."""
    region = np.array([0.0, -0.3, 0.4, 0.2, -0.5, 0.6])[:, None, None]
    band = np.array([0.7, 0.1, -0.3, -0.4, 0.3])[None, :, None]
    raw = region + band + np.array([-0.15, 0.15]) + 0.3 * (region > 0) * (band > 0)
    shares = np.einsum("r,a,s->ras", REGION_SHARES, AGE_SHARES, SEX_SHARES)
    constant = brentq(lambda c: float((shares * expit(c + raw)).sum()) - positive, -30.0, 30.0)
    return np.asarray(constant + raw, dtype=np.float64)


def _private(peer: str, factors: Floats, at: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    """One peer's nine columns."""
    first, second = factors.T

    def about(factor: Floats, weight: float) -> Floats:
        return np.asarray(weight * factor + np.sqrt(1.0 - weight**2) * rng.normal(size=len(factor)))

    gains = np.where(about(first, 0.6) > 1.3, np.exp(7.0 + 1.2 * about(second, 0.5)), 0.0)
    columns = {
        "amount": _some_missing(np.exp(8.0 + 0.9 * about(first, 0.8)).round(2), rng),
        "gains": pa.array(gains.round()),
        "visits": pa.array(rng.poisson(np.exp(0.4 + 0.45 * np.minimum(second, 6.0)))),
        "claims": pa.array(rng.poisson(np.exp(-1.2 + 0.4 * np.minimum(first, 6.0)))),
        "years": _some_missing(np.clip(12.0 - 6.0 * about(second, 0.6), 0.0, 40.0).round(), rng),
        "active": pa.array(about(second, 0.5) > 0.0),
        "status": _words(STATUSES, _cut(about(first, 0.6), len(STATUSES))),
        "trade": _words(TRADES, _shuffled(_cut(about(second, 0.7), len(TRADES)), len(TRADES), at)),
        "place": _words(PLACES, _shuffled(_cut(about(first, 0.5), len(PLACES), 2.0), len(PLACES), at)),
    }
    return {f"{peer}_{name}": column for name, column in columns.items()}


def _cut(values: Floats, categories: int, skew: float = 1.0) -> Ints:
    """Bins of equal weight under the normal law, or of falling weight if skewed."""
    codes: Ints = np.minimum(ndtr(values) ** skew * categories, categories - 1).astype(np.int64)
    return codes


def _shuffled(codes: Ints, categories: int, peer: int) -> Ints:
    """The same categories under numbers that say nothing of their order, the same for all seeds."""
    return np.asarray(np.random.default_rng([categories, peer]).permutation(categories)[codes], dtype=np.int64)


def _some_missing(values: Floats, rng: np.random.Generator) -> pa.Array:
    return pa.array(values, mask=rng.random(len(values)) < _MISSING)


def _words(names: tuple[str, ...], codes: Ints) -> pa.Array:
    return pa.array(names).take(pa.array(codes))


def contract_of(peers: tuple[str, ...], kind: Kind) -> Contract:
    """What the peers would sign: all their columns, or one score each with the birthday as key."""
    shared = [
        {"name": "region", "categories": REGIONS},
        {"name": "age", "edges": AGES[1:-1]},
        {"name": "sex", "categories": SEXES},
    ]
    label = {"column": "label", "positive": "yes", "negative": "no"}
    features = {peer: {"features": _features(peer, kind)} for peer in peers}
    key = {"key": [{"name": "birthday", "day_of_year": True}]} if kind == "score" else {}
    tree = {"name": "generated people", "label": label, "shared": shared, "peers": features, **key}
    return Contract.model_validate(tree)


def _features(peer: str, kind: Kind) -> dict[str, object]:
    if kind == "score":
        return {f"{peer}_score": "score"}
    numbers = {f"{peer}_{name}": kind for name in ("amount", "gains", "visits", "claims", "years")}
    words = {
        f"{peer}_{name}": {"kind": "categorical", "categories": categories}
        for name, categories in (("status", STATUSES), ("trade", TRADES), ("place", PLACES))
    }
    return {**numbers, f"{peer}_active": "boolean", **words}
