"""One model across organisations' tables, with no shared id and no row leaving the building."""

from radocraft.advise import advise
from radocraft.contract import Contract
from radocraft.craft import craft
from radocraft.example import example_peers
from radocraft.learn import learn
from radocraft.model import Model, explain, predict
from radocraft.offer import let_go, make_release
from radocraft.parts import Part
from radocraft.policy import Policy, release
from radocraft.report import report
from radocraft.second_round import recalibrate, tell_scores
from radocraft.sources import open_source
from radocraft.tally import Tally
from radocraft.telling import let_scores_go
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
    "let_go",
    "let_scores_go",
    "make_release",
    "open_source",
    "predict",
    "recalibrate",
    "release",
    "report",
    "tell_scores",
]
