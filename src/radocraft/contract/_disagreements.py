"""Mistakes in a contract whose entries are valid one by one but contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radocraft.contract._features import ANY, Categorical, Interact, Score, Spline
from radocraft.contract._labels import Number, TwoValues
from radocraft.contract._mistakes import Mistake, place

if TYPE_CHECKING:
    from radocraft.contract._contract import Contract

MOST_COLUMNS = 1_500
"""Of one peer; Postgres has no more in one answer, and the products of all pairs take 150 MB by then."""


def disagreements(contract: Contract, text: str) -> list[Mistake]:
    """Entries that do not go together, each with its place in the file's ``text``."""
    mistakes = [
        *_columns_twice(contract),
        *_odd_products(contract),
        *_odd_holders(contract),
        *_odd_folds(contract, text),
    ]
    mistakes += _too_wide(contract, text) if not mistakes else []
    return [*mistakes, *(_odd_scores(contract, text) if contract.of_scores else _odd_key(contract, text))]


def _odd_holders(contract: Contract) -> list[Mistake]:
    """Those who hold the label are peers, and not all of them."""
    holders = () if isinstance(contract.label, Number) else contract.label.held_by or ()
    place = "label.held_by"
    if unknown := [name for name in holders if name not in contract.peers]:
        remedy = f"the peers are {', '.join(contract.peers)}"
        return [Mistake(place, f"there is no peer '{unknown[0]}'", remedy)]
    if len({*holders}) < len(holders):
        return [Mistake(place, "a peer is named twice", "name each holder once")]
    if holders and {*holders} == {*contract.peers}:
        return [Mistake(place, "every peer holds the label", "leave `held_by` out")]
    if holders and ANY in contract.label.names:
        return [Mistake("label", f"'{ANY}' is reserved for an unknown label", "spell this value differently")]
    if holders and not contract.shared:
        return [Mistake(place, "without shared features, the proportions of the label cannot differ", "add some")]
    return [
        Mistake(f"peers.{name}.columns", f"'{name}' lacks the label, so it has no column for it", "take it out")
        for name, peer in contract.peers.items()
        if not contract.labelled(name) and contract.label.column in peer.columns
    ]


def _odd_folds(contract: Contract, text: str) -> list[Mistake]:
    """A folded column cannot have values that differ only in capitals."""
    agreed = {shared.name: shared.categories or () for shared in contract.shared} | {
        contract.label.column: contract.label.values
    }
    mistakes = []
    for peer, entry in contract.peers.items():
        categories = {name: f.categories for name, f in entry.features.items() if isinstance(f, Categorical)}
        for name, values in (agreed | categories).items():
            if len({*contract.as_read(peer, name, values)}) < len(values):
                where = place(["peers", peer, "cleaning", contract.column_of(peer, name)], text)
                problem = f"`fold` makes values of '{name}' equal that are different in the contract"
                mistakes.append(Mistake(where, problem, "take `fold` out, or agree on fewer values"))
    return mistakes


def _held_by_several(contract: Contract) -> set[str]:
    names = [name for peer in contract.peers.values() for name in peer.features]
    return {name for name in names if names.count(name) > 1}


def _odd_products(contract: Contract) -> list[Mistake]:
    """A product is of two different features, at least one of them the peer's own, none itself a product."""
    mistakes = []
    shared = {feature.name for feature in contract.shared}
    for peer, entry in contract.peers.items():
        plain = {name for name, feature in entry.features.items() if not isinstance(feature, Interact)}
        for name, feature in entry.features.items():
            if not isinstance(feature, Interact):
                continue
            place, (left, right) = f"peers.{peer}.features.{name}", feature.of
            if unknown := [factor for factor in feature.of if factor not in plain | shared]:
                remedy = f"{peer} may multiply {', '.join(sorted(plain | shared))}"
                mistakes.append(Mistake(place, f"'{unknown[0]}' cannot be multiplied", remedy))
            elif several := [factor for factor in feature.of if factor in _held_by_several(contract)]:
                remedy = "multiply features that one peer holds, or shared ones"
                mistakes.append(Mistake(place, f"'{several[0]}' is held by several peers", remedy))
            elif left == right or {left, right} <= shared:
                remedy = f"take two different features, at least one of them {peer}'s"
                mistakes.append(Mistake(place, "this product adds nothing new", remedy))
    return mistakes


def _too_wide(contract: Contract, text: str) -> list[Mistake]:
    """Products of all pairs of a peer's columns are summed, so thousands of columns are gigabytes for nothing."""
    mistakes = []
    for peer in contract.peers:
        widths = {name: _width(contract, peer, name) for name in contract.peers[peer].features}
        if (count := sum(widths.values())) <= MOST_COLUMNS:
            continue
        widest = max(widths, key=lambda name: widths[name])
        problem = f"{peer} would have {count:,} columns in the model, {widths[widest]:,} of them of '{widest}'"
        remedy = (
            f"agree on at most {MOST_COLUMNS:,}: name fewer categories (the frequent ones; all others are unseen), or "
            'give each peer one feature of kind "score", whose model uses such columns as they are'
        )
        mistakes.append(Mistake(place(["peers", peer, "features", widest], text), problem, remedy))
    return mistakes


def _width(contract: Contract, peer: str, name: str) -> int:
    """How many columns of the model a feature has."""
    feature = contract.peers[peer].features.get(name)
    if isinstance(feature, Interact):
        return _width(contract, peer, feature.of[0]) * _width(contract, peer, feature.of[1])
    if isinstance(feature, Categorical):
        return len(feature.codes)
    if isinstance(feature, Spline):
        return feature.width
    return 1 if feature is not None else next(len(s.encoded) for s in contract.shared if s.name == name)


def _columns_twice(contract: Contract) -> list[Mistake]:
    """A feature may not have the name of another's one-hot column."""
    encoded = {column: shared.name for shared in contract.shared for column in shared.encoded if column != shared.name}
    for peer in contract.peers.values():
        for name, feature in peer.features.items():
            if isinstance(feature, Categorical):
                encoded |= {f"{name}={code}": name for code in feature.codes}
    names = [*(shared.name for shared in contract.shared), *(n for p in contract.peers.values() for n in p.features)]
    return [
        Mistake(f"'{name}'", f"this is also a column of '{encoded[name]}' in the model", "give it another name")
        for name in names
        if name in encoded
    ]


def _odd_key(contract: Contract, text: str) -> list[Mistake]:
    """In a contract of columns the key relates the peers' shares of one score, in the second round."""
    if contract.key is None:
        return []
    if not isinstance(contract.label, TwoValues):
        remedy = "take `[[key]]` out"
        problem = "columns have a key for the second round, which is for a label of two values"
        return [Mistake(place(["key", 0], text), problem, remedy)]
    return [mistake for peer in contract.peers for mistake in _odd_key_column(contract, peer, text)]


def _odd_scores(contract: Contract, text: str) -> list[Mistake]:
    """In a contract of scores each peer has one, with a name of its own, and nothing else."""
    mistakes = []
    owner: dict[str, str] = {}
    for peer, entry in contract.peers.items():
        columns = [name for name, feature in entry.features.items() if not isinstance(feature, Score)]
        if columns:
            mistakes.append(_columns_too(peer, columns, [*entry.features], text))
        scores = [(name, feature) for name, feature in entry.features.items() if isinstance(feature, Score)]
        for name, score in scores[:1]:
            mistakes += _odd_columns(contract, peer, score, name, text)
        for name, _ in scores[1:]:
            where = place(["peers", peer, "features", name], text)
            remedy = f"keep one of the two; a model uses all of {peer}'s columns that it gets"
            mistakes.append(Mistake(where, f"{peer} already has a score, '{scores[0][0]}'", remedy))
        for name, _ in scores:
            if (other := owner.setdefault(name, peer)) != peer:
                where = place(["peers", peer, "features", name], text)
                remedy = f"give each its own name, such as {other}_{name} and {peer}_{name}"
                mistakes.append(Mistake(where, f"'{name}' is the score of {other}", remedy))
    if not contract.intercept:
        remedy = "take `intercept` out"
        mistakes.append(Mistake(place(["intercept"], text), "a model of scores always has a constant", remedy))
    return mistakes + [m for peer in contract.peers for m in _odd_key_column(contract, peer, text)]


def _columns_too(peer: str, columns: list[str], scores: list[str], text: str) -> Mistake:
    """One mistake for all columns of a peer: beside its score, or instead of one."""
    names = ", ".join(f"'{name}'" for name in columns)
    remedy = "take them out; its model uses every column of its table, or those that `of` names"
    if columns == scores:
        remedy = f'give {peer} one feature of kind "score" instead, made of these columns by its `of`, or of all'
    problem = f"where one peer has a score, each has one score and nothing else, but {peer} has {names}"
    return Mistake(place(["peers", peer, "features", columns[0]], text), problem, remedy)


def _spoken_for(contract: Contract, peer: str) -> dict[str, str]:
    """Columns of a peer's table that have a meaning of their own, and which."""
    roles = {contract.column_of(peer, shared.name): "a shared feature" for shared in contract.shared}
    if contract.labelled(peer):
        roles[contract.column_of(peer, contract.label.column)] = "the label"
    if contract.key is not None:
        roles[contract.column_of(peer, contract.key.name)] = "the key"
    return roles


def _odd_columns(contract: Contract, peer: str, score: Score, name: str, text: str) -> list[Mistake]:
    """What a score says of its peer's columns fits what they are."""
    path: list[int | str] = ["peers", peer, "features", name]
    roles, mistakes = _spoken_for(contract, peer), []
    for column in score.of or ():
        role = "the column that says whose a row is" if column == score.group else roles.get(column)
        if role is not None:
            use = "which is always used" if role == "a shared feature" else "which no model may use"
            mistakes.append(Mistake(place([*path, "of"], text), f"'{column}' is {role}, {use}", "take it out"))
    for field, column in (("group", score.group or ""), ("column", score.column or "")):
        if column in roles and not (field == "group" and roles[column] == "the key"):
            remedy = f"`{field}` is another column of {peer}'s own"
            mistakes.append(Mistake(place([*path, field], text), f"'{column}' is {roles[column]}", remedy))
    if score.column is not None and score.column == score.group:
        mistakes.append(Mistake(place([*path, "group"], text), "this is the column of the scores", "name another"))
    if name in contract.peers[peer].columns:
        problem = f"'{name}' is a score, not a column"
        remedy = (
            'take it out; a column of scores is written as { kind = "score", column = ..., fitted_elsewhere = true }'
        )
        mistakes.append(Mistake(place(["peers", peer, "columns", name], text), problem, remedy))
    return mistakes


def _odd_key_column(contract: Contract, peer: str, text: str) -> list[Mistake]:
    """The key's column is no other's, under whatever name."""
    if contract.key is None:
        return []
    column = contract.column_of(peer, contract.key.name)
    names = [contract.label.column, *(shared.name for shared in contract.shared)]
    for name in names:
        if name != contract.key.name and contract.column_of(peer, name) == column:
            where = place(["peers", peer, "columns", contract.key.name], text)
            remedy = "a key must be nothing else: choose another column"
            return [Mistake(where, f"'{column}' is '{name}' already", remedy)]
    return []
