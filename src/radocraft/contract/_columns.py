"""The columns a contract gives each peer: what it sums, in which order and in which units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats
from radocraft.contract._contract import Contract
from radocraft.contract._features import ANY, Boolean, Categorical, Feature, Interact, Quantity, Score, Spline
from radocraft.contract._labels import ANY_LABEL, Number
from radocraft.contract._splines import spline_units
from radocraft.errors import ContractMismatch

Constants = dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Column:
    """One private coordinate of the model: a number, or one category of a feature.

    ``centre`` and ``scale`` are None where they come from the peer's data.
    """

    name: str
    feature: str
    centre: float | None = 0.0
    scale: float | None = 1.0


def private_columns(contract: Contract, peer: str) -> tuple[Column, ...]:
    """The peer's private coordinates, in the order in which every table and matrix holds them."""
    columns: list[Column] = []
    for name, feature in sorted(contract.peer(peer).features.items()):
        if isinstance(feature, Interact):
            left, right = (_factor_columns(contract, peer, factor) for factor in feature.of)
            columns += [Column(f"{first} * {second}", name, None, None) for first in left for second in right]
        else:
            columns += _columns(name, feature)
    return tuple(columns)


def _columns(name: str, feature: Feature) -> list[Column]:
    if isinstance(feature, Categorical):
        return [Column(f"{name}={code}", name) for code in feature.codes]
    if isinstance(feature, Spline):
        return [Column(f"{name}~{term}", name, None, None) for term in range(1, feature.width + 1)]
    if isinstance(feature, Score):
        return []
    if isinstance(feature, Interact):
        raise TypeError("a product has no columns of its own")
    return [Column(name, name, feature.centre, feature.scale)]


def _factor_columns(contract: Contract, peer: str, factor: str) -> list[str]:
    """Names of a factor's columns: a feature of the peer's, or a shared one."""
    feature = contract.peers[peer].features.get(factor)
    if feature is not None:
        return [column.name for column in _columns(factor, feature)]
    return [name for shared in contract.shared if shared.name == factor for name in shared.encoded]


def summed_columns(contract: Contract, peer: str) -> tuple[Column, ...]:
    """What the peer sums: its private coordinates and, last, a numeric label."""
    label = contract.label
    of_label = (Column(label.column, label.column, label.centre, label.scale),) if isinstance(label, Number) else ()
    return private_columns(contract, peer) + of_label


def open_constants(contract: Contract, peer: str) -> dict[str, int]:
    """What the contract leaves to the peer's data: 0 for a number's centre and scale, else how many knots."""
    summed = contract.summed(peer)
    numbers = {name: 0 for name, f in summed.items() if isinstance(f, Quantity) and f.centre is None}
    return numbers | {name: f.knots for name, f in summed.items() if isinstance(f, Spline) and isinstance(f.knots, int)}


def odd_constants(contract: Contract, peer: str, constants: Constants) -> str | None:
    """The first feature whose constants are not what the contract leaves to the peer's data, if there is one.

    Knots that rise, of a spline without agreed ones; centre and scale of a number without.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, _ = rc.example_peers(rows=100)
    >>> odd_constants(contract, "bank", {"balance": (4000.0, 3000.0)})
    >>> odd_constants(contract, "bank", {"balance": (4000.0, 0.0)})
    'balance'
    """
    features = contract.summed(peer)
    for name, values in constants.items():
        feature = features.get(name)
        if isinstance(feature, Spline) and isinstance(feature.knots, int):
            fits = len(values) <= feature.knots and bool((np.diff(values) > 0).all())
        else:
            numeric = isinstance(feature, Quantity) and feature.centre is None
            fits = numeric and len(values) == 2 and values[1] > 0
        if not fits:
            return name
    return None


def units_of(contract: Contract, peer: str, constants: Constants) -> tuple[Floats, Floats]:
    """Centre and scale of each column of `summed_columns`: of the contract, or of ``constants``."""
    if missing := sorted(open_constants(contract, peer).keys() - constants.keys()):
        raise ContractMismatch(
            f"Units of {', '.join(missing)} are neither in the contract nor given. Give them as constants, "
            "such as {'income': (30000.0, 12000.0)}, or agree on them in the contract."
        )
    units: list[tuple[float, float]] = []
    for name, feature in sorted(contract.peer(peer).features.items()):
        columns = [column for column in private_columns(contract, peer) if column.feature == name]
        units += _units(name, feature, len(columns), constants)
    if isinstance(contract.label, Number):
        units += _units(contract.label.column, contract.label.feature, 1, constants)
    centre, scale = np.array(units, dtype=np.float64).reshape(-1, 2).T
    return centre, scale


def _units(name: str, feature: Feature, width: int, constants: Constants) -> list[tuple[float, float]]:
    if isinstance(feature, Spline):
        known = spline_units(feature.knots if isinstance(feature.knots, tuple) else constants[name])
        return known + [(0.0, 1.0)] * (width - len(known))
    if isinstance(feature, Quantity):
        centre, scale = (feature.centre, feature.scale) if feature.scale else constants[name]
        return [(float(centre or 0.0), float(scale))]
    return [(feature.centre, feature.scale)] if isinstance(feature, Boolean) else [(0.0, 1.0)] * width


def moment_labels(contract: Contract, peer: str) -> dict[int, str]:
    """The labels that have moments of their own, code and name: one for all where the label is a number or not known.

    Examples
    --------
    >>> from radocraft.demo import example_peers
    >>> moment_labels(example_peers(rows=1)[0], "bank")
    {-1: 'no', 1: 'yes'}
    """
    if isinstance(contract.label, Number) or not contract.labelled(peer):
        return {ANY_LABEL: ANY}
    return contract.label_codes(peer)
