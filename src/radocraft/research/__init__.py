"""The paper's experiments, rerun and extended. No product code imports this room.

In come the paper's data sets. Out go tables of results and figures.

To add a claim of the study: `study/_claims.py`.
To add a grid of settings: `study/_presets.py`.
To add an algorithm: `study/_methods.py`; to the main table: `study/_rivals.py` or `study/_ours.py`.
To add a figure: `study/_figures.py`.
"""

from radocraft.research.study._compare import best_peers, compare
from radocraft.research.study._fedsim import FEDSIM_REMARK, NOISE_OF_KEYS, run_fedsim
from radocraft.research.study._figures import draw_figures
from radocraft.research.study._presets import PRESETS, preset_named
from radocraft.research.study._results import read_results
from radocraft.research.study._run import run_study
from radocraft.research.study._standings import standings
from radocraft.research.study._summary import SummaryRow, summarise

__all__ = [
    "FEDSIM_REMARK",
    "NOISE_OF_KEYS",
    "PRESETS",
    "SummaryRow",
    "best_peers",
    "compare",
    "draw_figures",
    "preset_named",
    "read_results",
    "run_fedsim",
    "run_study",
    "standings",
    "summarise",
]
