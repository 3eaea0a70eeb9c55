"""The neutral key of a row, as a number from 0; -1 where a row has none.

Peers must come to the same number from the same attribute, however each holds it. So text is
compared without regard to capitals, spaces around it and forms of Unicode; a whole number is
its digits; a date is its year, month and day. A day of the year is counted as in a leap year, so that
the same birthday has the same number. A key that is hashed goes through HMAC-SHA-256 with a
secret that is in a file at each peer: who lacks it cannot try all birthdays.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from radocraft.arrays import Ints
from radocraft.contract import Contract, Key, Kind
from radocraft.errors import ContractMismatch, FileError, MissingColumn, WrongType
from radocraft.rows._encoding import Reader
from radocraft.rows._expressions import binned, coded, number
from radocraft.rows._instants import is_instant, read_dates

NO_KEY = -1
_BEFORE = np.cumsum([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30])
_LEAST_SECRET = 16


@dataclass(frozen=True)
class KeyReader:
    """How a peer's rows get their key.

    Parameters
    ----------
    key
        What was agreed.
    raw, kind
        The peer's column, and how the engine holds it.
    secret
        What hashes are made with.
    """

    key: Key
    raw: exp.Expr
    kind: Kind
    secret: bytes = b""

    @classmethod
    def of(cls, reader: Reader, secret: Path | None) -> KeyReader | None:
        """For this peer; None where the contract has no key."""
        key = reader.contract.key
        if key is None:
            return None
        column = reader.contract.column_of(reader.peer, key.name)
        if column not in reader.kinds:
            raise MissingColumn(
                f"The table has no column '{column}', the key '{key.name}' of the contract. If only the name differs, "
                f"map it under [peers.{reader.peer}.columns]; if the peer lacks it, agree on a contract without a key."
            )
        shared_secret = read_secret(reader.contract, secret)
        if key.categories is not None:
            key = key.model_copy(update={"categories": reader.contract.as_read(reader.peer, key.name, key.categories)})
        return cls(key, exp.column(column, quoted=True), reader.kinds[column], shared_secret)

    def expression(self) -> exp.Expr:
        """What to ask the engine for: the number itself if the engine can compute it by comparing, else the column."""
        if self.key.categories is not None:
            return coded(self.raw, self.kind, self.key.categories)
        if self.key.edges is not None:
            return binned(number(self.raw, self.kind), self.key.edges)
        return self.raw.copy()

    def numbers(self, column: pa.Array) -> Ints:
        """The keys of some rows, from what the engine gave."""
        if self.key.categories is not None or self.key.edges is not None:
            read = column.to_numpy(zero_copy_only=False).astype(np.int64)
            return np.where(read < self.key.values, read, NO_KEY)
        if self.key.day_of_year:
            return self._days(column)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        coded_column = column.dictionary_encode()
        of_each = [self._of(value) for value in coded_column.dictionary.to_pylist()]
        numbers = np.array([*of_each, NO_KEY], dtype=np.int64)
        return np.asarray(numbers[coded_column.indices.fill_null(len(of_each)).to_numpy(zero_copy_only=False)])

    def _of(self, value: Any) -> int:
        text = canonical(value)
        if text is None:
            return NO_KEY
        if self.key.last_digits is not None:
            digits = "".join(letter for letter in text if letter.isdecimal())
            return int(digits[-self.key.last_digits :]) if digits else NO_KEY
        mixed = hmac.digest(self.secret, text.encode(), "sha256")
        return int.from_bytes(mixed, "big") % self.key.values

    def _days(self, column: pa.Array) -> Ints:
        dates = column if is_instant(column.type) else None
        if dates is None and self.kind == "text":
            dates = read_dates(column)
        if dates is None or dates.null_count > column.null_count:
            raise WrongType(
                f"The key '{self.key.name}' is to be the day of a date's year, but some cells hold no date. "
                "Write dates as 2001-12-31, leave unknown ones empty, or agree on another key."
            )
        month, day = (part(dates).fill_null(0).to_numpy(zero_copy_only=False) for part in (pc.month, pc.day))
        return np.where(day > 0, _BEFORE[month - 1] + day - 1, NO_KEY).astype(np.int64)


def canonical(value: Any) -> str | None:
    """A value as all peers write it; None if there is none.

    Examples
    --------
    >>> canonical(" Bern "), canonical(3012), canonical(3012.0), canonical("ＢＥＲＮ"), canonical("")
    ('bern', '3012', '3012', 'bern', None)
    """
    if value is None or (isinstance(value, float | Decimal) and not math.isfinite(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal):
        return str(int(value)) if value == int(value) else repr(float(value))
    if hasattr(value, "isoformat"):
        return str(value.isoformat())[:10]
    if isinstance(value, bytes):
        return value.hex()
    return " ".join(unicodedata.normalize("NFKC", str(value)).casefold().split()) or None


def read_secret(contract: Contract, path: Path | None) -> bytes:
    """The secret that the contract's key is hashed with; it must be the agreed one."""
    key = contract.key
    if key is None or key.secret is None:
        return b""
    if path is None:
        raise FileError(
            f"The key '{key.name}' is hashed with a secret that the peers share. Say where its file is (`secret`)."
        )
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"Cannot read the secret '{path}': {error.strerror}. Check the path.") from error
    if len(content) < _LEAST_SECRET:
        raise FileError(
            f"The secret '{path}' is shorter than {_LEAST_SECRET} bytes, so it could be guessed. Make a longer one "
            f"together, for example with `head -c 32 /dev/urandom > {path}`, and put its SHA-256 into the contract."
        )
    if hashlib.sha256(content).hexdigest() != key.secret:
        raise ContractMismatch(
            f"'{path}' is not the secret that the contract's key '{key.name}' was agreed with. "
            "Ask the other peers for theirs, or agree on a new one."
        )
    return content
