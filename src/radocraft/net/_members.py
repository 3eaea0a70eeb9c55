"""Whom we talk to, and within which limits: ``members.toml`` in an identity's folder.

One section for each name; every line may be left out::

    [collector]

    [bank]
    certificate = "bank.example.com"    # the name in its certificate, if it is another
    token = "sha256:2bb80d…"            # only where the certificate does not hold it
    calls_per_minute = 600
    jobs_per_day = 24
    part_bytes = 4_000_000_000
    streams = 2                         # files at a time
    gets_model = true                   # a peer's: whether a collector sends it what was learned
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from radocraft.contract import Mistake, Record, from_validation, report
from radocraft.errors import IdentityError


class Member(Record):
    """Somebody we talk to.

    Examples
    --------
    >>> Member(name="bank").subject, Member(name="bank", certificate="bank.example.com").subject
    ('bank', 'bank.example.com')
    """

    name: str
    certificate: str | None = None
    token: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    calls_per_minute: Annotated[int, Field(ge=1)] = 600
    jobs_per_day: Annotated[int, Field(ge=1)] = 24
    part_bytes: Annotated[int, Field(ge=1)] = 4_000_000_000
    streams: Annotated[int, Field(ge=1)] = 2
    gets_model: bool = True

    @property
    def subject(self) -> str:
        """The name its certificate must have."""
        return self.certificate or self.name


def read_members(path: Path) -> dict[str, Member]:
    """Read ``members.toml``; nobody if there is no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise IdentityError(f"Cannot read '{path}': {error}.") from error
    try:
        tree: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise IdentityError(f"'{path}' is not valid TOML: {error}.") from error
    members, mistakes = {}, []
    for name, entry in tree.items():
        try:
            members[name] = Member.model_validate({**(entry if isinstance(entry, dict) else {"": entry}), "name": name})
        except ValidationError as error:
            remedy = "see docs/network.md"
            mistakes += [Mistake(f"{name}.{m.place}", m.problem, m.remedy) for m in from_validation(error, "", remedy)]
    if mistakes:
        raise IdentityError(report(mistakes, f"'{path}'"))
    return members
