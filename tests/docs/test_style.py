"""The rooms keep two rules of CONVENTIONS.md that a reader would otherwise have to look for."""

import re

from tests.cli.conftest import ROOT

SOURCE = ROOT / "src" / "ropewalk"
ROOMS = ("access", "bench", "checker", "client", "core", "nodes", "store", "telemetry")
MODULES = ("authoring.py", "configuration.py", "documents.py", "json_events.py", "modules.py", "platforms.py",
           "settings.py", "workflow.py")  # fmt: skip
LONGEST = 350
NAMELESS = re.compile(r"(?i)\b(whoever|nobody|somebody|everybody|anybody)\b")
# A user of Unix.
EXCEPTIONS = ("bench/server.py",)


def texts() -> dict[str, str]:
    """What every Python and SQL file of these rooms says, by its path."""
    files = [path for room in (*ROOMS, *MODULES) for path in (SOURCE / room, *sorted((SOURCE / room).rglob("*")))]
    return {
        str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8")
        for path in files
        if path.suffix in (".py", ".sql")
    }


def test_every_sentence_of_the_source_names_its_subject():
    found = {name: NAMELESS.findall(text) for name, text in texts().items() if name not in EXCEPTIONS}

    assert {name: words for name, words in found.items() if words} == {}


def test_no_module_is_longer_than_a_reader_takes_in():
    lengths = {name: text.count("\n") for name, text in texts().items() if name.endswith(".py")}

    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}
