"""Refuses words that hide who is meant, in every folder that is free of them already.

python -m tools.words

A comment, a docstring, a message or the name of a test names its subject: the caller, the owning worker, the execution.
`words.txt` lists the folders that do so, one a line; a folder that has been cleaned is added, and stays clean.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

WORDS: Final = ("whoever", "whatever", "nobody", "somebody", "everybody", "anybody")
SUFFIXES: Final = (".md", ".py", ".sql")
DATA: Final = ("src/ropewalk/bench/server.py",)
"""Files in which such a word is data: a user of Unix."""
FOLDERS: Final = Path(__file__).with_suffix(".txt")
# Names of tests are sentences too, so an underscore ends a word.
_WORD: Final = re.compile(rf"(?<![a-z])({'|'.join(WORDS)})(?![a-rt-z])", re.IGNORECASE)


def complaints(root: Path, folders: Iterable[str]) -> Iterator[str]:
    """Every place in these folders of `root` that has one of the words."""
    for folder in folders:
        if not (root / folder).is_dir():
            yield f"{FOLDERS.name}: there is no folder {folder}: name it as it is called now"
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path != Path(__file__) and str(path.relative_to(root)) not in DATA:
                yield from (f"{path.relative_to(root)}:{place}" for place in _places(path.read_text()))


def _places(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for found in _WORD.finditer(line):
            yield f"{number}: {found[1]!r} hides who is meant: name the caller, the worker, the execution …"


def main() -> int:
    found = list(complaints(FOLDERS.parents[1], FOLDERS.read_text().split()))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
