"""The fenced examples of a page, so that tests can do what its readers do."""

import re
from pathlib import Path

from msgspec import Struct

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"# (\w+\.\w+)\n")


class Snippet(Struct, frozen=True):
    """One example: its language, its text as it stands, and the line of the page it begins on."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The file it belongs in, if its first line names one."""
        named = _NAMED.match(self.text)
        return named[1] if named else None


def snippets(page: Path, *languages: str) -> list[Snippet]:
    """The examples of a page in the order of reading; of these languages, or all."""
    text = page.read_text(encoding="utf-8")
    found = [Snippet(each[1], each[2], text.count("\n", 0, each.start()) + 2) for each in _FENCE.finditer(text)]
    return [each for each in found if not languages or each.language in languages]
