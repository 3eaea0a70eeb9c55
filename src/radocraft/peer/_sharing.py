"""From a peer's table to its part: sum, pass the gate, and take the one road out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from radocraft.contract import Contract
from radocraft.errors import ContractMismatch, PolicyRefusal, RadocraftError
from radocraft.files import check_apart, check_free, check_place
from radocraft.gate import Policy, check_allowed, release
from radocraft.ledger import Ledger
from radocraft.parts import Part, check_signature, public_key
from radocraft.peer._file_kinds import PARTS
from radocraft.peer._outgoing import Drawn
from radocraft.peer._road import Errand, Say, UnitsChosen, is_stream, log, send
from radocraft.peer._score_sharing import Scoring, share_of_scores
from radocraft.progress import Progress, quiet
from radocraft.rows import Scorer, Source, craft, label_rows, open_source
from radocraft.sums import Cells, Tally


def share(
    table: Any,
    contract: Contract,
    peer: str,
    *,
    policy: Policy | None = None,
    output: str | Path | None = None,
    name: str | None = None,
    onto: Tally | None = None,
    tally: str | Path | None = None,
    proportions: Sequence[Part] = (),
    scorer: Any = None,
    keep_scorer: str | Path | None = None,
    refit: bool = False,
    on_scorer: Callable[[Scorer], None] | None = None,
    secret: str | Path | None = None,
    job: str | None = None,
    sign: bytes | None = None,
    replace: bool = True,
    say: Say = log.warning,
    progress: Progress = quiet,
) -> Part:
    """Sum a peer's rows, add noise, and write the part that may leave: the one way out of a peer.

    Parameters
    ----------
    table
        Where the rows are: a path, a data frame, a source; see `open_source`.
    contract, peer
        What was agreed, and which of its peers this table belongs to.
    policy
        The peer's rules; those of `Policy()` if None. Where it asks for a
        review, the part is put beside ``output`` and `AwaitsReview` is raised.
    output
        The part file to write; the ledger hears of it before. Without one the
        part stays in memory and cannot be written (but for mode "exact").
    name
        What the ledger calls the table if the policy does not say; its file's
        name, or the peer's, if None.
    onto
        A tally of earlier rows to add these to.
    tally
        Where to keep the bounded sums, for ``onto``. They never leave.
    proportions
        For a peer without the label: parts of those who hold it, by whose
        proportions it labels its own rows (mode "exact" only).
    scorer
        For contracts of scores: an estimator of your own to fit (anything with ``fit`` and
        ``predict_proba``), in place of the contract's model; or a `Scorer` that was kept, or
        its file, which scores the rows as they are.
    keep_scorer
        Where the scorer is kept; beside the output if None. It never leaves. If there is one already
        and no ``scorer`` is given, it scores the rows as they are: rows that came since are new to it.
    refit
        Fit the scorer anew, and keep it in place of the one that is there.
    on_scorer
        Given the scorer before anything leaves, such as to print how good it is.
    secret
        The file of the secret that keys are hashed with, if the contract says so.
    job
        The request it answers, if it came over the network.
    sign
        A private key in PEM to sign the part with, such as that of a network identity.
    replace
        Whether other files may be written over; the same release may be written onto itself always.
    say
        Told what the user should know, such as that the same part was given
        again; the log "radocraft" by default.
    progress
        Called as the work goes on.

    Examples
    --------
    >>> import tempfile
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> file = Path(tempfile.mkdtemp()) / "bank.part.parquet"
    >>> part = rc.share(tables["bank"], contract, "bank", output=file)
    >>> part.peer, sorted(path.name for path in file.parent.iterdir())
    ('bank', ['bank.ledger', 'bank.ledger.parts', 'bank.part.parquet'])
    >>> again = rc.share(tables["bank"], contract, "bank", output=file, say=print)
    The same release of an unchanged table: given again, nothing spent.
    >>> again.metadata["hash"] == part.metadata["hash"]
    True
    """
    Contract.expect(contract, "share(table, contract, peer)")
    policy = policy or Policy()
    check_allowed(contract, peer, policy)

    def finish(part: Part) -> Part:
        return part if sign is None else _signed(part, sign)

    errand = None
    if output is not None:
        named = policy.table or name or table_name_of(table, peer)
        errand = Errand(PARTS, contract, peer, policy, named, Path(output), job, say, finish, replace=replace)
        errand.check()
    ledger = None if errand is None else errand.ledger
    if contract.of_scores:
        _check_columns_only(onto, tally, proportions)
        kept = Path(keep_scorer) if keep_scorer is not None else scorer_beside(output, peer)
        check_apart([output, kept, ledger])
        scoring = Scoring(
            contract,
            peer,
            policy,
            scorer=scorer,
            kept=kept,
            must_keep=keep_scorer is not None,
            refit=refit,
            secret=None if secret is None else Path(secret),
            on_scorer=on_scorer,
            say=say,
            progress=progress,
            replace=replace,
        )
        part = share_of_scores(table, scoring, errand)
    else:
        _check_scores_only(scorer, keep_scorer, secret, refit or None)
        sums = None if tally is None else Path(tally)
        check_apart([output, sums, ledger])
        summing = Summing(contract, peer, policy, onto, sums, proportions, say, progress, replace)
        part = _share_of_columns(table, summing, errand)
    return part if errand is not None else finish(part)


@dataclass(frozen=True)
class Summing:
    """How rows become sums of columns; see `share`."""

    contract: Contract
    peer: str
    policy: Policy
    onto: Tally | None
    tally: Path | None
    proportions: Sequence[Part]
    say: Say
    progress: Progress
    replace: bool


def _share_of_columns(table: Any, summing: Summing, errand: Errand[Part] | None) -> Part:
    contract, policy, onto = summing.contract, summing.policy, summing.onto
    if summing.tally is not None:
        check_place(summing.tally)
    if summing.proportions:
        _check_whole(policy, onto or summing.tally)
    source, held = open_source(table), [part.cells(contract) for part in summing.proportions]
    while True:
        units = None if errand is None or onto is not None else _units(errand)
        total, notes = _summed(source, summing, held, units)
        if summing.tally is not None:
            _keep(total, summing.tally, summing)
        draw = _drawing(total, contract, policy, notes)
        if errand is None:
            return draw(None).content
        try:
            return send(replace(errand, sets_units=total.units_rho > 0.0 and onto is None), total.digest(), draw)
        except UnitsChosen:
            continue


def _keep(total: Tally, place: Path, summing: Summing) -> None:
    """Keep the tally; not over another if that is to stay. The same one is not written again."""
    if place.is_file() and not summing.replace:
        with suppress(RadocraftError):
            if Tally.load(place, summing.contract).digest() == total.digest():
                return
        check_free(place)
    total.save(place)


def _summed(
    source: Source, summing: Summing, held: Sequence[Cells], units: dict[str, tuple[float, ...]] | None
) -> tuple[Tally, tuple[str, ...]]:
    """The tally, and what a reader should know of it."""
    contract, peer, progress = summing.contract, summing.peer, summing.progress
    if held:
        labelled = label_rows(source, contract, peer, held, progress=progress)
        return labelled.tally, (labelled.note,)
    bounds = summing.policy.bounds
    tally = craft(
        source, contract, peer, bounds=bounds, onto=summing.onto, constants=units, say=summing.say, progress=progress
    )
    return tally, ()


def _drawing(
    total: Tally, contract: Contract, policy: Policy, notes: tuple[str, ...]
) -> Callable[[Ledger | None], Drawn[Part]]:
    """Makes the part, given the ledger."""
    units = {column: tuple(map(float, values)) for column, values in total.constants.items()}

    def draw(ledger: Ledger | None) -> Drawn[Part]:
        released = release(total, contract, policy, notes=notes)
        return Drawn(Part.of(released, ledger), released.spend, units)

    return draw


def _signed(part: Part, private: bytes) -> Part:
    """The part with a signature by this key, the one it has if it has."""
    with suppress(RadocraftError):
        check_signature(part.metadata["hash"], part.metadata.get("signature"), public_key(private), part.peer)
        return part
    return part.signed(private)


def _units(errand: Errand[Part]) -> dict[str, tuple[float, ...]] | None:
    """Units of columns that an earlier release of the table was made in: no need to pay for others."""
    if errand.ledger is None or not errand.policy.noisy:
        return None
    return Ledger(errand.ledger).history().constants(errand.table, errand.peer, errand.contract.fingerprint)


def scorer_beside(output: str | Path | None, peer: str) -> Path | None:
    """Where a scorer is kept: in the output's folder, under the peer's name; nowhere if the output has no folder."""
    if output is None or is_stream(Path(output)):
        return None
    return Path(output).parent / (re.sub(r"[^\w.-]", "_", peer) + ".scorer")


def _check_columns_only(*given: object) -> None:
    if any(given):
        raise ContractMismatch(
            "Tallies and proportions are for contracts of columns, and this one is of scores. Share the whole table; "
            "give the kept scorer to score it as before."
        )


def _check_scores_only(*given: object) -> None:
    if any(one is not None for one in given):
        raise ContractMismatch("Scorers and secrets are for contracts of scores, and this one is of columns.")


def table_name_of(table: Any, peer: str) -> str:
    """What to call a table: the name of its (first) file, never an address, which may hold a password."""
    first = table[0] if isinstance(table, list | tuple) and table else table
    if isinstance(first, str | Path) and "://" not in str(first):
        return Path(first).resolve().name or peer
    return peer


def _check_whole(policy: Policy, kept: object) -> None:
    """Labels found by proportions depend on all rows of the table at once."""
    if policy.noisy:
        raise PolicyRefusal(
            "Labels found by proportions depend on all rows at once, and no noise on sums hides a row from that. "
            "Craft sums by signature instead (leave the proportions out): `learn` estimates sums by label from them."
        )
    if kept is not None:
        raise ContractMismatch(
            "Labels found by proportions are of the whole table at once, so tallies of them do not add up. "
            "Craft the whole table, without a tally to add to or to keep."
        )
