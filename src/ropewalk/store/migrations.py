"""The numbered steps that make the schema, forward only.

Each step is applied in one transaction and remembered with its checksum. A store that has a step we do not know, or
knows one of ours by another text, is not touched.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from ropewalk.store.errors import IncompatibleStore, NoStore
from ropewalk.store.queries import split

FOLDER: Final = Path(__file__).parent / "migrations"
_FILE: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class Migration(Struct, frozen=True):
    """One step."""

    number: int
    name: str
    checksum: str
    statements: tuple[str, ...]


@cache
def known_migrations() -> tuple[Migration, ...]:
    """Every step of this version, from 1 without a gap."""
    steps = tuple(_load(file) for file in sorted(FOLDER.glob("*.sql")))
    assert [step.number for step in steps] == list(range(1, len(steps) + 1)), "a step is missing, or there twice"
    return steps


def _load(file: Path) -> Migration:
    match = _FILE.fullmatch(file.name)
    assert match, f"{file.name} is not named like 0001_initial.sql"
    statements = tuple(split(file.read_text(encoding="utf-8")))
    # Of the statements alone: a comment may be mended in a step that is applied everywhere.
    checksum = hashlib.sha256(";\n".join(" ".join(text.split()) for text in statements).encode()).hexdigest()
    return Migration(int(match[1]), match[2], checksum, statements)


def pending(applied: Iterable[tuple[int, str]], known: Sequence[Migration], place: str) -> Sequence[Migration]:
    """The steps still to be taken by a store that has taken `applied` (number, checksum)."""
    taken = sorted(applied)
    if taken and taken[-1][0] > len(known):
        raise IncompatibleStore(
            f"{place} was made by a newer Ropewalk (schema {taken[-1][0]}, this one knows {len(known)}): "
            "upgrade Ropewalk, or choose another database"
        )
    for step, (number, checksum) in zip(known, taken, strict=False):
        if (step.number, step.checksum) != (number, checksum):
            raise IncompatibleStore(
                f"{place} has another schema {number} than this Ropewalk: it was made by a changed version; "
                "use the one that made it, or choose another database"
            )
    return known[len(taken) :]


def require_all(applied: Sequence[tuple[int, str]], known: Sequence[Migration], place: str) -> None:
    """Refuses a store that lacks some of the steps: a reader must not take them."""
    if not applied:
        raise NoStore(
            f"there is nothing of Ropewalk in {place} yet: `ropewalk run FILE` or `ropewalk up` makes it, "
            "--db names another"
        )
    if pending(applied, known, place):
        raise IncompatibleStore(
            f"{place} was made by an older Ropewalk (schema {len(applied)}, this one knows {len(known)}): "
            "the next `ropewalk run FILE` or `ropewalk up` brings it up to date"
        )
