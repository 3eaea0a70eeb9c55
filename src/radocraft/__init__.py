"""One model across organisations' tables, with no shared id and no row leaving the building."""

from radocraft.contract import Contract
from radocraft.craft import craft
from radocraft.part import Part
from radocraft.policy import Policy, release
from radocraft.sources import open_source
from radocraft.version import __version__

__all__ = ["Contract", "Part", "Policy", "__version__", "craft", "open_source", "release"]
