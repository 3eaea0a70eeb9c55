"""Review before release: a person looks at exactly what would leave, and decides.

`page` is what a data officer sees in a browser, `server` shows it on this machine
alone. Decisions are carried out by `peer`.
"""

from radocraft.review.server import ReviewServer

__all__ = ["ReviewServer"]
