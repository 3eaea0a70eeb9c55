"""The file that leaves a peer: written, read, checked and signed.

In comes a release of the gate, or a file from anybody; out goes a part whose every
number has been checked. Nothing here sees a row.
"""

from radocraft.parts.metadata import FORMAT
from radocraft.parts.part import Part
from radocraft.parts.sign import public_key, sign

__all__ = ["FORMAT", "Part", "public_key", "sign"]
