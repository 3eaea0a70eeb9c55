"""Reproducible archives of models, in skops' format: the same models give the same bytes.

skops calls objects by where they stand in memory, and its zip says when it was written. Here objects that occur
several times are numbered as they occur, all others need no name, and the clock stands still.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_SCHEMA, _NAME, _FILE = "schema.json", "__id__", "file"
_VALUE = "JsonNode"
_ADDRESS = re.compile(r'"__id__": [0-9]+')


def settled(archive: bytes) -> bytes:
    """An archive that holds the same, and whose bytes depend on nothing else."""
    with ZipFile(BytesIO(archive)) as given:
        content = {name: given.read(name) for name in given.namelist()}
    schema = json.loads(content.pop(_SCHEMA))
    _sort_sets(schema)
    times = Counter(node[_NAME] for node in _nodes(schema) if _NAME in node)
    numbers, files = dict[Any, int](), dict[str, str]()
    for node in _nodes(schema):
        name = node.pop(_NAME, None)
        if times[name] > 1 and node.get("__loader__") != _VALUE:
            node[_NAME] = numbers.setdefault(name, len(numbers) + 1)
        if node.get(_FILE) in content:
            node[_FILE] = files.setdefault(node[_FILE], f"{len(files)}.{node[_FILE].rpartition('.')[2]}")
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archived:
        for old, new in files.items():
            archived.writestr(ZipInfo(new), content[old], ZIP_DEFLATED)
        archived.writestr(ZipInfo(_SCHEMA), json.dumps(schema), ZIP_DEFLATED)
    return out.getvalue()


def _nodes(part: Any) -> Iterator[dict[str, Any]]:
    """Everything that stands for an object, from the outside in."""
    if isinstance(part, dict):
        if "__class__" in part:
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _nodes(each)


def _sort_sets(schema: Any) -> None:
    """Members of a set in an order that does not change from run to run, the innermost first."""
    for node in reversed([*_nodes(schema)]):
        if node.get("__loader__") == "SetNode":
            node["content"].sort(key=lambda member: _ADDRESS.sub("", json.dumps(member)))
