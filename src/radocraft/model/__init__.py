"""The model file, and what is done with it: predicting, explaining, exporting.

In comes what was learned, or a file. Out go scores for a table, reasons for them, and a scikit-learn pipeline.

To add a field of the model file: `_fields.py`, or `_scores.py` for models of scores.
"""

from radocraft.model._explanation import Explanation, explain, sentence
from radocraft.model._fields import (
    BlockTable,
    Certificate,
    Coefficient,
    Compared,
    Difference,
    Estimate,
    Gate,
    NoiseCost,
    Odds,
    Origin,
    Outlook,
    Reliability,
    Seen,
    Tuning,
    Validation,
    Weight,
    number,
    plain,
)
from radocraft.model._interval import Interval
from radocraft.model._model import Model, load_column_model, load_model, predict
from radocraft.model._outlook import ExpectedQuality, ScoreOutlook
from radocraft.model._output import write_joined, write_scores, write_table
from radocraft.model._score_words import absences, weights_in_words
from radocraft.model._scores import HeadKind, HeadWeights, Relation, ScoreModel

__all__ = [
    "BlockTable",
    "Certificate",
    "Coefficient",
    "Compared",
    "Difference",
    "Estimate",
    "ExpectedQuality",
    "Explanation",
    "Gate",
    "HeadKind",
    "HeadWeights",
    "Interval",
    "Model",
    "NoiseCost",
    "Odds",
    "Origin",
    "Outlook",
    "Relation",
    "Reliability",
    "ScoreModel",
    "ScoreOutlook",
    "Seen",
    "Tuning",
    "Validation",
    "Weight",
    "absences",
    "explain",
    "load_column_model",
    "load_model",
    "number",
    "plain",
    "predict",
    "sentence",
    "weights_in_words",
    "write_joined",
    "write_scores",
    "write_table",
]
