"""Just enough of Thrift's compact protocol to read a Parquet footer and page headers before Arrow does.

Arrow ends the whole process on some footers that contradict themselves, and
believes every size. What this does not understand is a `ValueError` or an
`IndexError`, never a crash.
"""

from __future__ import annotations

from typing import TypeAlias

Value: TypeAlias = "int | bytes | list[Value] | Struct | None"
Struct: TypeAlias = "dict[int, Value]"

_DEPTH = 12


class Thrift:
    r"""Reads values one after the other; at most so many.

    Examples
    --------
    >>> Thrift(b"\x15\x06\x18\x02ok\x00").struct()
    {1: 3, 2: b'ok'}
    """

    def __init__(self, content: bytes, most: int = 1000) -> None:
        self.content, self.at, self._left = content, 0, most

    def struct(self, depth: int = 0) -> Struct:
        """The fields of a struct by number."""
        fields: Struct = {}
        number = 0
        while byte := self._byte():
            if byte < 0x10:
                raise ValueError("fields in a strange order")
            number += byte >> 4
            fields[number] = self._value(byte & 0x0F, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Value:
        self._left -= 1
        if depth > _DEPTH or self._left < 0:
            raise ValueError("too deep, or too much")
        if kind in (1, 2):
            return int(kind == 1)
        if kind in (4, 5, 6):
            number = self._varint()
            return (number >> 1) ^ -(number & 1)
        if kind == 12:
            return self.struct(depth)
        if kind in (9, 10):
            return self._list(depth)
        return self._bytes({3: 1, 7: 8}[kind] if kind != 8 else self._varint())

    def _list(self, depth: int) -> list[Value]:
        header = self._byte()
        count, kind = header >> 4, header & 0x0F
        if count == 15:
            count = self._varint()
        if kind in (1, 2):
            return [self._byte() for _ in range(min(count, self._left + 1))]
        return [self._value(kind, depth + 1) for _ in range(count)]

    def _bytes(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self.content):
            raise IndexError("cut short")
        return self.content[self.at - count : self.at]

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _varint(self) -> int:
        out = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            out |= (byte & 0x7F) << shift
            if byte < 0x80:
                return out
        raise ValueError("a number too long")


def numbers(struct: Value, *fields: int) -> tuple[int, ...]:
    """Fields that must be there and be whole numbers, 0 or more."""
    if not isinstance(struct, dict):
        raise ValueError("not a struct")
    values = tuple(struct.get(field) for field in fields)
    out = tuple(number for number in values if isinstance(number, int) and number >= 0)
    if len(out) < len(values):
        raise ValueError("a number is missing or negative")
    return out


def items(struct: Value, field: int) -> list[Value]:
    """A field that must be there and be a list."""
    if not isinstance(struct, dict) or not isinstance(values := struct.get(field), list):
        raise ValueError("a list is missing")
    return values
