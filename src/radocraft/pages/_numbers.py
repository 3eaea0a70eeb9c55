"""Numbers for people."""

from __future__ import annotations

from datetime import datetime
from math import floor, log10


def unbroken(text: str) -> str:
    """The same text, kept on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, minus as it is printed, to so many significant digits.

    Examples
    --------
    >>> signed(-0.01234), signed(1234.5), signed(0.0)
    ('−0.0123', '+1,230', '0')
    """
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:+.{digits - 1}e}".replace("-", "\N{MINUS SIGN}")
    places = max(digits - 1 - floor(log10(abs(value))), 0)
    rounded = round(value, digits - 1 - floor(log10(abs(value))))
    return f"{rounded:+,.{places}f}".replace("-", "\N{MINUS SIGN}")


def each(weight: float | tuple[float, ...]) -> tuple[float, ...]:
    """The numbers of a weight: one, or one for each class.

    Examples
    --------
    >>> each(0.5), each((0.1, 0.2))
    ((0.5,), (0.1, 0.2))
    """
    return weight if isinstance(weight, tuple) else (weight,)


def plain(value: float) -> str:
    """A number without ornament, minus as it is printed."""
    return f"{value:,.6g}".replace("-", "\N{MINUS SIGN}")


def day(time: str) -> str:
    """The day of a time in ISO form.

    Examples
    --------
    >>> day("2026-11-08T03:39:42+00:00")
    '8 November 2026'
    """
    when = datetime.fromisoformat(time)
    return f"{when.day} {when:%B %Y}"


def listed(names: list[str]) -> str:
    """Names as a sentence lists them.

    Examples
    --------
    >>> listed(["bank", "insurer", "shop"])
    'bank, insurer and shop'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
