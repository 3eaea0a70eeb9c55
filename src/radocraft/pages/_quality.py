"""How good a model is, in the words that fit its label: an error rate, or a root mean square error."""

from __future__ import annotations

from radocraft.contract import Number, TwoValues
from radocraft.model import Estimate, Model, Outlook, Validation
from radocraft.pages._numbers import plain

Assessment = Estimate | Outlook | Validation


def is_number(model: Model) -> bool:
    """Whether the label is a number."""
    return isinstance(model.contract.label, Number)


def has_two_values(model: Model) -> bool:
    """Whether the label has two values, so that there is one score and one ROC curve."""
    return isinstance(model.contract.label, TwoValues)


def aim(model: Model) -> str:
    """What the model predicts."""
    label = model.contract.label
    if isinstance(label, Number):
        return f"One model of {label.column}"
    if isinstance(label, TwoValues):
        return f"One model of whether {label.column} is “{label.names[1]}”"
    return f"One model of which {label.column} it is, of {len(label.names)}"


def expected(model: Model) -> Estimate:
    """The best there is on new rows: from counts of scores if there was a second round, else from normal scores."""
    return model.second_round or model.estimate


def error(model: Model, value: float) -> str:
    """An error: a share of rows, or in the label's units."""
    return plain(float(f"{value:.4g}")) if is_number(model) else f"{value:.1%}"


def second(estimate: Assessment) -> tuple[str, str]:
    """The second measure: AUC, or R² of a number."""
    if estimate.r2 is not None:
        return "R²", f"{estimate.r2:.3f}"
    return "AUC", "unknown" if estimate.auc is None else f"{estimate.auc:.3f}"


def naive(model: Model) -> tuple[str, float]:
    """The answer that needs no model, and its error: the most common label, or the mean of a number."""
    return model.naive_answer, model.estimate.base_rate or 0.0
