"""One model across organisations' tables, with no shared id and no row leaving the building."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from radocraft.files import __version__

if TYPE_CHECKING:
    from radocraft.contract import Contract
    from radocraft.demo import RadocraftClassifier, example_peers
    from radocraft.errors import RadocraftError
    from radocraft.gate import Policy, release
    from radocraft.learning import advise, learn, recalibrate
    from radocraft.model import Model, ScoreModel, explain, load_model, predict
    from radocraft.pages import report
    from radocraft.parts import Part
    from radocraft.peer import share, share_counts
    from radocraft.rows import Scorer, craft, open_source, profile
    from radocraft.sums import Tally

__all__ = [
    "Contract",
    "Model",
    "Part",
    "Policy",
    "RadocraftClassifier",
    "RadocraftError",
    "ScoreModel",
    "Scorer",
    "Tally",
    "__version__",
    "advise",
    "craft",
    "example_peers",
    "explain",
    "learn",
    "load_model",
    "open_source",
    "predict",
    "profile",
    "recalibrate",
    "release",
    "report",
    "share",
    "share_counts",
]

_ROOMS = {
    "demo": ("example_peers", "RadocraftClassifier"),
    "contract": ("Contract",),
    "rows": ("open_source", "profile", "craft", "Scorer"),
    "sums": ("Tally",),
    "gate": ("Policy", "release"),
    "peer": ("share", "share_counts"),
    "parts": ("Part",),
    "learning": ("learn", "advise", "recalibrate"),
    "model": ("Model", "ScoreModel", "load_model", "predict", "explain"),
    "pages": ("report",),
    "errors": ("RadocraftError",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from its room; rooms are opened when they are needed."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'radocraft' has no attribute '{name}'")
    return getattr(import_module(f"radocraft.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    """What a user needs, nothing else."""
    return __all__
