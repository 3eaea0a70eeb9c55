"""What the peers agree on before anything is computed: label, features, shared features, keys.

In comes a file that people wrote. Out goes a checked contract with its fingerprint, or all mistakes at once,
each with its place and its remedy. This room sees no row, no sum and no SQL.

To add a kind of feature: a class in `_features.py`; its columns in `_columns.py`; how a row gets its values in
    `rows/_encoding.py`.
To add a kind of label: a class in `_labels.py`.
To add a check of a contract: `_disagreements.py`.
To add a cleaning rule: a field in `_cleaning.py`; how it is computed in `rows/_cleaning.py`.
"""

from radocraft.contract._cleaning import Cleaning
from radocraft.contract._columns import (
    Column,
    Constants,
    moment_labels,
    odd_constants,
    open_constants,
    private_columns,
    summed_columns,
    units_of,
)
from radocraft.contract._contract import Contract, check_contract
from radocraft.contract._draft import draft_contract
from radocraft.contract._features import (
    ANY,
    MISSING,
    UNSEEN,
    Boolean,
    Categorical,
    DatePart,
    Feature,
    Interact,
    Quantity,
    Score,
    Shared,
    Spline,
    Value,
    show,
)
from radocraft.contract._keys import Key
from radocraft.contract._labels import ANY_LABEL, Number, TwoValues
from radocraft.contract._mistakes import Mistake, from_validation, place, report
from radocraft.contract._outline import ColumnProfile, Kind, Profile
from radocraft.contract._record import Record
from radocraft.contract._splines import combinations, spline_columns
from radocraft.contract._words import describe_contract

__all__ = [
    "ANY",
    "ANY_LABEL",
    "MISSING",
    "UNSEEN",
    "Boolean",
    "Categorical",
    "Cleaning",
    "Column",
    "ColumnProfile",
    "Constants",
    "Contract",
    "DatePart",
    "Feature",
    "Interact",
    "Key",
    "Kind",
    "Mistake",
    "Number",
    "Profile",
    "Quantity",
    "Record",
    "Score",
    "Shared",
    "Spline",
    "TwoValues",
    "Value",
    "check_contract",
    "combinations",
    "describe_contract",
    "draft_contract",
    "from_validation",
    "moment_labels",
    "odd_constants",
    "open_constants",
    "place",
    "private_columns",
    "report",
    "show",
    "spline_columns",
    "summed_columns",
    "units_of",
]
