"""From parts to a model: blocks, completion, matching, the paper's DRL, scores, and what to expect.

In come the parts of every peer. Out goes a model with its losses and an outlook. This room sees sums and no rows,
except the few linked rows whose people consented. It is not called `learn`: that is the name of its main function.

To add a way to learn: a file beside `_matching.py` that returns a `Fit` (`_fit.py`); choose it in `_learn.py`.
"""

from radocraft.learning._advise import Advice, advise, best_order, leanest
from radocraft.learning._blocks import Blocks, merge_cells
from radocraft.learning._completion import complete
from radocraft.learning._differences import CHANCE
from radocraft.learning._drl import RadoChoices, Rados, choose_gamma, fit_drl
from radocraft.learning._learn import learn
from radocraft.learning._matching import DEFAULT_CAUTION, Ridge, describe, fit_matching, generalised_cross_validation
from radocraft.learning._metrics import auc, error_rate
from radocraft.learning._population import RARE, Population, tenths
from radocraft.learning._second_round import recalibrate

__all__ = [
    "CHANCE",
    "DEFAULT_CAUTION",
    "RARE",
    "Advice",
    "Blocks",
    "Population",
    "RadoChoices",
    "Rados",
    "Ridge",
    "advise",
    "auc",
    "best_order",
    "choose_gamma",
    "complete",
    "describe",
    "error_rate",
    "fit_drl",
    "fit_matching",
    "generalised_cross_validation",
    "leanest",
    "learn",
    "merge_cells",
    "recalibrate",
    "tenths",
]
