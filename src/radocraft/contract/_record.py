"""The base class of everything kept in files or sent: immutable records that refuse unknown fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

_PYDANTIC = {name for name in dir(BaseModel) if not name.startswith("__")}


def _without_pydantic(names: Iterable[str], kinds: tuple[type, ...]) -> list[str]:
    """Names without those that pydantic brings, for people who complete what they type."""
    ours = {name for kind in kinds if kind.__module__.startswith("radocraft") for name in vars(kind)}
    return [name for name in names if name not in _PYDANTIC or (name in ours and not name.startswith("model_"))]


if TYPE_CHECKING:
    _Base = BaseModel
else:

    class _Quiet(type(BaseModel)):
        """Lists only our own names of a class."""

        def __dir__(cls) -> list[str]:
            return _without_pydantic(super().__dir__(), cls.__mro__)

    class _Base(BaseModel, metaclass=_Quiet):
        pass


class Record(_Base):
    """A frozen record that takes no unknown key.

    Examples
    --------
    >>> class Size(Record):
    ...     rows: int
    >>> [name for name in dir(Size(rows=3)) if not name.startswith("_")]
    ['rows']
    >>> Size(rows=3, columns=2)
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for Size
    ...
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __dir__(self) -> list[str]:
        """Only our own names; pydantic's are there all the same."""
        return _without_pydantic(super().__dir__(), type(self).__mro__)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed; what was worked out from the old ones stays behind."""
        copied = super().model_copy(update=update, deep=deep)
        for name in {*vars(copied)} - {*type(self).model_fields}:
            del vars(copied)[name]
        return copied
