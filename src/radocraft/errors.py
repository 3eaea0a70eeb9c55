"""Everything that can go wrong, as one tree.

::

    RadocraftError            exit 1
    ├── ContractError         exit 1   the contract file itself has mistakes
    ├── ContractMismatch      exit 3   a part or a tally belongs to another contract
    ├── DataError             exit 1   the table does not fit the contract
    │   ├── MissingColumn
    │   ├── WrongType
    │   ├── NotFinite
    │   ├── EmptyTable
    │   ├── UnknownLabel
    │   ├── AlreadyIn
    │   └── OneClass
    ├── SourceError           exit 1   the place where the rows are cannot be reached, or its driver is not installed
    ├── PolicyError           exit 1   the policy file itself has mistakes
    ├── PolicyRefusal         exit 4   the gate keeps a release back
    ├── AwaitsReview          exit 5   nothing is wrong: a person has to decide before it leaves
    ├── FileError             exit 1   a tally, part or model that cannot be read or written
    │   └── Tampered
    ├── LearnError            exit 1   the parts cannot be learned from together
    ├── NetworkError          exit 1   a peer or the collector cannot be reached, or does not answer as agreed
    │   └── IdentityError             a certificate, a token or the right to ask is missing or not good
    └── StudyError            exit 1   an experiment that cannot be set up or read back

A message says what happened, what was expected and what to do next. It never
holds a row's value or a small count, since it may end up in somebody's log.
"""

from __future__ import annotations

from pathlib import Path


class RadocraftError(Exception):
    """Base of every error raised on purpose; ``exit_code`` is what the command line returns.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> try:
    ...     rc.share(tables["bank"], contract, "shop")
    ... except rc.RadocraftError as error:
    ...     print(error.exit_code, error)
    1 The contract 'default within a year' has no peer 'shop'. Its peers are: bank, insurer.
    """

    exit_code = 1
    spent: tuple[float, float] | None = None
    """Rho and delta of the noise that was drawn before the gate refused by it; to be refused says something, too."""


class ContractError(RadocraftError):
    """The contract has mistakes; the message lists all of them."""


class ContractMismatch(RadocraftError):
    """Two things made under different contracts were brought together."""

    exit_code = 3


class DataError(RadocraftError):
    """The table does not fit the contract."""


class MissingColumn(DataError):
    """A column the contract names is not in the table."""


class WrongType(DataError):
    """A column cannot be read as the kind the contract says."""


class NotFinite(DataError):
    """A numeric column holds infinities, or numbers too large to square."""


class EmptyTable(DataError):
    """There are no rows."""


class UnknownLabel(DataError):
    """The label column holds something other than the agreed values."""


class AlreadyIn(DataError):
    """Rows to add to a tally are in it already."""


class OneClass(DataError):
    """Only one of the labels occurs."""


class SourceError(RadocraftError):
    """The place where the rows are cannot be reached, or its driver is not installed."""


class PolicyError(RadocraftError):
    """The policy has mistakes; the message lists all of them."""


class PolicyRefusal(RadocraftError):
    """The peer's own policy does not let this leave."""

    exit_code = 4


class AwaitsReview(RadocraftError):
    """Nothing is wrong, and nothing has left: a person has to decide first.

    Parameters
    ----------
    message
        What waits, and how to see it and decide.
    pending
        The file that waits.
    """

    exit_code = 5

    def __init__(self, message: str, pending: Path) -> None:
        super().__init__(message)
        self.pending = pending


class FileError(RadocraftError):
    """A file of ours cannot be read or written."""


class Tampered(FileError):
    """The content of a part does not match its hash."""


class LearnError(RadocraftError):
    """These parts cannot be learned from together."""


class NetworkError(RadocraftError):
    """A peer or the collector cannot be reached, or does not answer as agreed."""


class IdentityError(NetworkError):
    """A certificate, a token or the right to ask is missing or not good."""


class StudyError(RadocraftError):
    """An experiment cannot be set up, or its data or results cannot be read."""
