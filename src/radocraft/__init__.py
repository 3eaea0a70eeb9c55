"""One model across organisations' tables, with no shared id and no row leaving the building."""

from radocraft.advise import advise
from radocraft.contract import Contract
from radocraft.craft import craft
from radocraft.example import example_peers
from radocraft.gate.policy import Policy
from radocraft.gate.release import release
from radocraft.learn import learn
from radocraft.model import Model, explain, predict
from radocraft.parts import Part
from radocraft.peer import share, share_scores
from radocraft.report import report
from radocraft.second_round import recalibrate
from radocraft.sources import open_source
from radocraft.tally import Tally
from radocraft.version import __version__

__all__ = [
    "Contract",
    "Model",
    "Part",
    "Policy",
    "Tally",
    "__version__",
    "advise",
    "craft",
    "example_peers",
    "explain",
    "learn",
    "open_source",
    "predict",
    "recalibrate",
    "release",
    "report",
    "share",
    "share_scores",
]
