"""The second round: counts of a model's scores leave by the same road as parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from radocraft.gate import Policy
from radocraft.ledger import Ledger
from radocraft.model import Model
from radocraft.parts import Histograms
from radocraft.peer._counting import check_scope, count_scores
from radocraft.peer._file_kinds import SCORES
from radocraft.peer._outgoing import Drawn
from radocraft.peer._road import Errand, Say, log, send
from radocraft.peer._sharing import table_name_of
from radocraft.rows import open_source


def share_counts(
    table: Any,
    model: Model,
    peer: str,
    *,
    policy: Policy | None = None,
    output: str | Path | None = None,
    name: str | None = None,
    job: str | None = None,
    replace: bool = True,
    secret: str | Path | None = None,
    say: Say = log.warning,
) -> Histograms:
    """Count how a peer's share of a model's scores is spread, and write what may leave of that.

    Where the contract has a key, also sums of it by the key's groups, by which the learner sees how peers are related.

    Parameters
    ----------
    table, peer, policy, output, name, job, replace, secret, say
        As for `share`.
    model
        What `learn` gave.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> model = rc.learn([rc.share(tables[peer], contract, peer) for peer in tables], contract)
    >>> counts = rc.share_counts(tables["bank"], model, "bank")
    >>> counts.peer, abs(counts.total - 2000) < 200
    ('bank', True)
    """
    policy = policy or Policy()
    check_scope(model, peer, policy)
    errand = None
    if output is not None:
        named = policy.table or name or table_name_of(table, peer)
        errand = Errand(SCORES, model.contract, peer, policy, named, Path(output), job, say, replace=replace)
        errand.check()
    counts = count_scores(open_source(table), model, peer, policy, None if secret is None else Path(secret))

    def draw(ledger: Ledger | None) -> Drawn[Histograms]:
        released = counts.released(model, peer, policy)
        return Drawn(released, released.spend)

    return draw(None).content if errand is None else send(errand, counts.digest(model), draw)
