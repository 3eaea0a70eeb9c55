"""Where a peer's rows are. They stay there: only aggregates come out.

`open_source` takes what a user has at hand (a file, many files, a folder, a
data frame, an Arrow table, a table in DuckDB or Postgres, a Spark data frame) and gives a `Source`. Engines are
imported in this folder and nowhere else.
"""

from radocraft.sources.base import Source
from radocraft.sources.opening import open_source

__all__ = ["Source", "open_source"]
