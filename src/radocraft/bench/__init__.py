"""What crafting and learning cost: against a bare scan, reading the parts and entity resolution, and with size.

Every measurement runs in a process of its own, and ratios are taken inside one
run, so that a busy machine slows both sides alike.
"""

from radocraft.bench.growth import SIZES, Curve, growth_of
from radocraft.bench.learn import Learning, against_reading
from radocraft.bench.linkage import Rival, against_linkage
from radocraft.bench.measure import Cost, growth, measure
from radocraft.bench.scan import CODES, Codec, Scan, against_scan

__all__ = [
    "CODES",
    "SIZES",
    "Codec",
    "Cost",
    "Curve",
    "Learning",
    "Rival",
    "Scan",
    "against_linkage",
    "against_reading",
    "against_scan",
    "growth",
    "growth_of",
    "measure",
]
