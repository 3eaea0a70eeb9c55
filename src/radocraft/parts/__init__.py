"""The file that leaves a peer: written, read, checked and signed.

In comes a release from the gate, or a file from anybody. Out goes a part in which every number has been checked.
This room sees no row.

To add a field of the part: `_metadata.py`, or `_table.py` for a number by cell; what must be true of it in `_check.py`.
"""

from radocraft.parts._histograms import BINS, REACH, Histograms
from radocraft.parts._metadata import FORMAT
from radocraft.parts._part import Part
from radocraft.parts._sign import check_signature, public_key

__all__ = ["BINS", "FORMAT", "REACH", "Histograms", "Part", "check_signature", "public_key"]
