"""What crafting and learning cost: against a bare scan of the same file, and against entity resolution.

Every measurement runs in a process of its own, and ratios are taken inside one
run, so that a busy machine slows both sides alike.
"""

from radocraft.bench.linkage import Rival, against_linkage
from radocraft.bench.measure import Cost, growth, measure
from radocraft.bench.scan import Scan, against_scan

__all__ = ["Cost", "Rival", "Scan", "against_linkage", "against_scan", "growth", "measure"]
