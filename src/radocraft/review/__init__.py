"""Review before release: a person looks at exactly what would leave, and decides.

`conclusion` carries a decision out, for the terminal and the page alike; `page` is
what a data officer sees in a browser, `server` shows it on this machine alone.
"""

from radocraft.review.conclusion import Conclusion, Verdict, conclude, read_waiting
from radocraft.review.server import ReviewServer

__all__ = ["Conclusion", "ReviewServer", "Verdict", "conclude", "read_waiting"]
