"""A number to expect on new rows, from where to where, and what keeps these apart."""

from __future__ import annotations

from math import hypot, inf

from pydantic import Field

from radocraft.contract import Record


class Interval(Record):
    """What to expect of one number on new rows, and from where to where.

    ``parts`` are standard errors, by what they come of: the `relation` of what peers know,
    the `sample` there was, the `noise` in what left, and the `shape` that rows are assumed to
    have. The interval is twice all of them together on either side, as far as that is possible.

    Examples
    --------
    >>> told = Interval.around(0.5, {"relation": 0.03, "sample": 0.04}, most=0.55)
    >>> told.low, told.high, 0.45 in told
    (0.4, 0.55, True)
    """

    value: float
    low: float
    high: float
    parts: dict[str, float] = Field(default_factory=dict)

    @classmethod
    def around(cls, value: float, parts: dict[str, float], least: float = -inf, most: float = inf) -> Interval:
        """Two standard errors either side, within what is possible."""
        half = 2.0 * hypot(*parts.values())
        low, middle, high = (min(max(at, least), most) for at in (value - half, value, value + half))
        return cls(value=middle, low=low, high=high, parts=parts)

    def __contains__(self, value: float) -> bool:
        """Whether it holds a value."""
        return self.low <= value <= self.high

    def words(self, form: str, *, best: float = 0.0, middle: bool = False) -> str:
        """From where to where, after the value if ``middle``; one side only where it reaches the best there is.

        Examples
        --------
        >>> Interval(value=0.1, low=0.08, high=0.12).words(".1%")
        '8.0% to 12.0%'
        >>> Interval(value=0.1, low=0.08, high=0.12).words(".1%", middle=True)
        '10.0% (8.0% to 12.0%)'
        >>> Interval(value=0.002, low=0.0, high=0.012).words(".1%")
        'below 1.2%'
        >>> Interval(value=0.998, low=0.99, high=1.0).words(".3f", best=1.0)
        'above 0.990'
        """
        if best in (self.low, self.high):
            return f"above {self.low:{form}}" if best == self.high else f"below {self.high:{form}}"
        ends = f"{self.low:{form}} to {self.high:{form}}"
        return f"{self.value:{form}} ({ends})" if middle else ends
