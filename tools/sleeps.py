"""Tests that sleep although a signal could be awaited; `python -m tools.house sleeps` refuses them.

A test that sleeps is slow where it sleeps too long, and fails now and then where it does not. `tests/polling.py` waits
for what sends no signal, with a deadline. Below is where sleeping is the point, and how often: the rule refuses one
more there too. `sleep(0)`, one turn of the loop, is no sleep.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SLEEP: Final = re.compile(r"(?<![a-z])(?<!def )sleep\((?!0\))")
ALLOWED: Final[dict[str, tuple[int | None, str]]] = {
    "tests/polling.py": (2, "the one place that looks again and again, with a deadline"),
    "tests/crash": (None, "a campaign gives its victims some work to do"),
    "tests/faults": (None, "a campaign gives its load some time before and after each fault"),
    "tests/rates": (None, "a campaign gives its load some time"),
    "tests/triggers/deliveries.py": (3, "a sender that was not answered tries again a moment later"),
    "tests/engines/simulation": (None, "its loop has a clock of its own: no time passes"),
    "tests/fleet/campaign.py": (1, "a campaign gives its load some time between two kills"),
    "tests/fleet/test_database.py": (2, "an outage lasts so long; PostgreSQL itself looks for a commit to break off"),
    "tests/fleet/workflows.py": (1, "a call of a node takes so long"),
    "tests/api/doors/test_server_trouble.py": (1, "a client of a load that was refused does not come back at once"),
    "tests/cli/node_types.py": (1, "a node in another process looks for the file that lets it go on"),
    "tests/cli/processes/test_reloading.py": (1, "the same; the test writes that node"),
    "tests/engines/test_hostile_nodes.py": (1, "a node that holds up the loop is what is tested"),
    "tests/nodes/sandbox_corpus.py": (2, "code of users that sleeps is refused"),
    "tests/nodes/test_code.py": (1, "the same"),
    "tests/tools/test_house.py": (3, "samples of what the rule refuses"),
    "tests/service/test_channels.py": (1, "a loop that is held up is what is tested"),
}


def found(folder: Path) -> dict[str, list[int]]:
    """The lines of the tests that sleep, by file."""
    lines = {}
    for path in sorted((folder / "tests").rglob("*.py")):
        numbers = [number for number, line in enumerate(path.read_text().splitlines(), 1) if SLEEP.search(line)]
        if numbers:
            lines[path.relative_to(folder).as_posix()] = numbers
    return lines


def refused(lines: dict[str, list[int]]) -> Iterator[str]:
    """What is wrong: more sleeps than are allowed, or fewer, so that the list above stays true."""
    for file, numbers in lines.items():
        allowed, _ = next((ALLOWED[place] for place in (file, *_folders(file)) if place in ALLOWED), (0, ""))
        if allowed is not None and len(numbers) > allowed:
            where = ", ".join(map(str, numbers))
            yield f"{file} sleeps in line {where}: await a signal, or use tests/polling.py (allowed here: {allowed})"
    for place, (allowed, _) in ALLOWED.items():
        if allowed is not None and len(lines.get(place, ())) < allowed:
            yield f"{place} sleeps less often than tools/sleeps.py allows: lower the number there"


def _folders(file: str) -> Iterator[str]:
    yield from (folder.as_posix() for folder in Path(file).parents)
