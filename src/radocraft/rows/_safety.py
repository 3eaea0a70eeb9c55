"""What a scorer's file may contain, so that loading it runs no code and using it stays in its own memory.

Models are kept in skops' format: types by name and numbers, no bytecode. Names are taken from a list: what
skops trusts (scikit-learn's estimators), and a few more below. Trees are arrays of
numbers that scikit-learn follows without looking where they lead, so they are looked at here; those of
LightGBM are looked at in their text. The same models give the same bytes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any
from zipfile import BadZipFile

import numpy as np

from radocraft.errors import FileError, Tampered
from radocraft.rows._archive import settled
from radocraft.rows._lightgbm import with_boosters, with_texts

_INSIDE = (
    "functools.partial",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",
)
_ELSEWHERE = {
    "lightgbm": (
        "collections.OrderedDict",
        "collections.defaultdict",
        "lightgbm.sklearn.LGBMClassifier",
        "lightgbm.sklearn.LGBMRegressor",
        "radocraft.rows._lightgbm.BoosterText",
    ),
    "xgboost": (
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
        "xgboost.sklearn.XGBRegressor",
    ),
}
_FROM = 7


def trusted_types(data: bytes) -> list[str]:
    """The names in a file of models that are no plain ones of scikit-learn, but known to run no code."""
    return sorted(_known() & {*_asked(data)})


def _known() -> set[str]:
    from importlib.util import find_spec  # noqa: PLC0415

    known = {*_INSIDE}
    for package, names in _ELSEWHERE.items():
        if find_spec(package) is not None:
            known |= {*names}
    return known


def _asked(data: bytes) -> list[str]:
    import skops.io  # noqa: PLC0415

    try:
        return list(skops.io.get_untrusted_types(data=data))
    except (ValueError, TypeError, KeyError, AttributeError, ImportError, OSError, BadZipFile, RecursionError) as error:
        raise Tampered(
            "The models in this scorer's file cannot be read, as if somebody had changed them. Fit a scorer anew."
        ) from error


def save_models(models: Sequence[Any]) -> bytes:
    """Fitted models as bytes that hold no code."""
    import skops.io  # noqa: PLC0415

    try:
        parts = (part for part, _ in _parts(list(models), (), set()))
        data = settled(bytes(skops.io.dumps(with_texts(list(models), parts))))
        if not {*(asked := _asked(data))} <= _known():
            load_models(data, asked)  # what skops does not know may not come back as it was
    except (TypeError, ValueError, AttributeError, RecursionError, Tampered) as error:
        kind, why = type(models[-1]).__name__, str(error.__cause__ or error).splitlines()[0].rstrip(".")
        raise FileError(
            f"A {kind} cannot be written to a file that is safe to load: {why}. Its scores can "
            "still be released in this session. For a file use an estimator of scikit-learn, LightGBM or XGBoost."
        ) from error
    return data


def load_models(data: bytes, trusted: Sequence[str] = ()) -> tuple[Any, ...]:
    """Models from such bytes, their trees looked at; ``trusted`` are further types that the user vouches for."""
    import skops.io  # noqa: PLC0415

    asked = _asked(data)
    allowed = {*asked} & {*_known(), *trusted}
    if strange := [name for name in asked if name not in allowed]:
        raise FileError(
            f"The scorer's file holds {', '.join(strange)}, which could run code when it is loaded, so nothing was "
            "loaded. If you made the file yourself, name them as `trusted`; else ask where it comes from."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            models = skops.io.loads(data, trusted=sorted(allowed))
        except (Warning, ValueError, TypeError, KeyError, AttributeError, ImportError, OSError, IndexError) as error:
            raise Tampered(
                "The models in this scorer's file cannot be put together. Fit a scorer anew, with the versions of the "
                "packages that are installed here."
            ) from error
    if not isinstance(models, list):
        raise Tampered("This scorer's file holds no list of models. Fit a scorer anew.")
    with_boosters([part for part, _ in _parts(models, (), set())])
    check_trees(models)
    check_probe(models)
    return tuple(models)


def check_trees(models: Sequence[Any]) -> None:
    """Every step in every tree must lead further down, to a node that is there, by a column that is there."""
    for part, widths in _parts(models, (), set()):
        kind = type(part).__name__
        sound = True
        if kind == "TreePredictor":
            sound = bool(widths) and widths[-1][1] is not None and _sound_predictor(part, widths[-1][1])
        elif kind == "Tree" and type(part).__module__ == "sklearn.tree._tree":
            sound = _sound_tree(part, [width for width, _ in widths])
        if not sound:
            raise Tampered("A tree in this scorer's file leads nowhere, as if somebody had changed it. Fit one anew.")


Widths = tuple[tuple[int, Any], ...]


def _parts(part: Any, widths: Widths, seen: set[int]) -> Iterator[tuple[Any, Widths]]:
    """All that a model is made of, each with the widths of the estimators around it since the last pipeline."""
    if id(part) in seen or isinstance(part, str | bytes | int | float | None):
        return
    seen.add(id(part))
    yield part, widths
    if isinstance(part, list | tuple | set | frozenset):
        inner: list[Any] = [*part]
    elif isinstance(part, dict):
        inner = [*part.values()]
    elif isinstance(part, np.ndarray):
        inner = part.ravel().tolist() if part.dtype == object else []
    else:
        inner = [*getattr(part, "__dict__", {}).values()]
        widths = _narrowed(part, widths)
    for each in inner:
        yield from _parts(each, widths, seen)


def _narrowed(part: Any, widths: Widths) -> Widths:
    if type(part).__name__ in ("Pipeline", "ColumnTransformer", "FeatureUnion"):
        return ()
    width = getattr(part, "__dict__", {}).get("n_features_in_")
    if not isinstance(width, int):
        return widths
    return (*widths, (width, part if hasattr(part, "_bin_mapper") else None))


def _sound_predictor(predictor: Any, booster: Any) -> bool:
    """A tree of boosting: nodes point further down, and categories are of columns of categories."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE  # noqa: PLC0415

    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    width, is_category = booster.n_features_in_, np.asarray(booster._bin_mapper.is_categorical_, dtype=bool)
    if nodes.ndim != 1 or not len(nodes) or nodes.dtype != PREDICTOR_RECORD_DTYPE or is_category.shape != (width,):
        return False
    if sets.ndim != 2 or sets.dtype != np.uint32 or (len(sets) and sets.shape[1] != _FROM + 1):
        return False
    inner = nodes[nodes["is_leaf"] == 0]
    here, column = np.flatnonzero(nodes["is_leaf"] == 0), inner["feature_idx"]
    if not all(_leads_down(inner[side].astype(np.int64), here, len(nodes)) for side in ("left", "right")):
        return False
    if not ((column >= 0) & (column < width)).all():
        return False
    by_set = inner["is_categorical"] != 0
    return bool(is_category[column[by_set]].all() and (inner["bitset_idx"][by_set] < len(sets)).all())


def _sound_tree(tree: Any, widths: list[int]) -> bool:
    left, right, column = tree.children_left, tree.children_right, tree.feature
    here = np.flatnonzero(left != -1)
    if not all(_leads_down(side[here], here, tree.node_count) for side in (left, right)):
        return False
    width = min([tree.n_features, *widths])
    return bool(((column[here] >= 0) & (column[here] < width)).all())


def _leads_down(to: Any, here: Any, count: int) -> bool:
    return bool(((to > here) & (to < count)).all())


def check_probe(models: Sequence[Any]) -> None:
    """What a booster makes of a row before its trees see it must be as wide as they take it for."""
    for part, _ in _parts(models, (), set()):
        if hasattr(part, "_bin_mapper") and getattr(part, "_preprocessor", None) is not None:
            width = part.n_features_in_
            if np.shape(part._preprocessor.transform(np.zeros((1, width)))) != (1, width):
                raise Tampered("A model in this scorer's file is not what it says. Fit a scorer anew.")
