"""Which columns of different peers are the same thing, going by their names and kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from radocraft.contract._outline import ColumnProfile, Profile
from radocraft.errors import ContractError

_WORD = re.compile(r"[A-Z]?[a-zà-ÿ]+|[A-Z]+(?![a-z])|[0-9]+")
_SHORTEST = 3
_BIRTH = ("birth", "born", "dob", "geb", "naiss", "nacim")


def words_of(name: str) -> tuple[str, ...]:
    """A name's words in small letters.

    Examples
    --------
    >>> words_of("age_at_signing"), words_of("CustomerAge"), words_of("Region")
    (('age', 'at', 'signing'), ('customer', 'age'), ('region',))
    """
    return tuple(word.lower() for word in _WORD.findall(name)) or (name.lower(),)


def likeness(one: str, other: str) -> int:
    """How alike two names are: 3 the same, 2 but for capitals and marks, 1 one has all words of the other, 0 not."""
    if one == other:
        return 3
    left, right = words_of(one), words_of(other)
    if "".join(left) == "".join(right):
        return 2
    few, many = sorted((left, right), key=len)
    return int({*few} < {*many} and max(map(len, few)) >= _SHORTEST)


def pair_columns(profiles: Mapping[str, Profile], taken: Mapping[str, str]) -> list[dict[str, ColumnProfile]]:
    """Columns that every peer has, each as what it is at every peer; ``taken`` are spoken for already."""
    first, *others = profiles
    pairs, used = [], {peer: {column} for peer, column in taken.items()}
    candidates = [(least, column) for least in (3, 2, 1) for column in profiles[first].columns]
    for least, column in candidates:
        if column.name in used[first] or column.unfit is not None:
            continue
        pair = {first: column}
        for peer in others:
            same = [
                c
                for c in profiles[peer].columns
                if c.kind == column.kind
                and c.unfit is None
                and c.name not in used[peer]
                and likeness(column.name, c.name) >= least
            ]
            if len(same) != 1:
                break
            pair[peer] = same[0]
        else:
            pairs.append(pair)
            for peer, held in pair.items():
                used[peer].add(held.name)
    order = [column.name for column in profiles[first].columns]
    return sorted(pairs, key=lambda pair: order.index(pair[first].name))


def label_columns(profiles: Mapping[str, Profile], label: str, named: Mapping[str, str]) -> dict[str, str]:
    """What each peer calls the label: as somebody says in ``named``, or the column whose name is most like it."""
    found = {}
    for peer, profile in profiles.items():
        said = named.get(peer, label)
        alike = sorted(profile.by_name, key=lambda name: -likeness(said, name))
        least = 3 if peer in named else 1
        if not alike or likeness(said, alike[0]) < least:
            raise ContractError(
                f"The profile of '{peer}' has no column '{said}' for the label. It has {', '.join(profile.by_name)}. "
                f"If it is there under another name, say so: --label {label} --label {peer}=COLUMN."
            )
        found[peer] = alike[0]
    return found


def of_birth(pair: Mapping[str, ColumnProfile]) -> bool:
    """Whether columns are dates of birth, by their names."""
    return all(
        column.kind == "date" and any(word.startswith(_BIRTH) for word in words_of(column.name))
        for column in pair.values()
    )
