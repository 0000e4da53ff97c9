"""A database file that is replaced under a living server, as a careless restore does."""

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.crash.ledgers import Place
from tests.crash.verdict import judge
from tests.faults.figures import Figure, Outcome
from tests.faults.ground import checked, ground

BEFORE: Final = 1.5
NOTICED_WITHIN: Final = 10.0


async def replaced_file(folder: Path) -> Outcome:
    """The server notices, acknowledges nothing that the new file does not have, and leaves; the file stays sound."""
    place = Place(str(folder))
    violations: list[str] = []
    async with ground(folder, place.database) as field:
        workflow = await field.save()
        field.load(workflow)
        await asyncio.sleep(BEFORE)
        # At rest, so that what nodes have done by now is exactly what the backup tells.
        await field.rest()
        violations += [f"{each} hangs" for each in await field.quiet()]
        backed_up, effects = time.monotonic(), place.effects.read()
        _back_up(place.database, folder / "backup.db")
        field.load(workflow)
        await asyncio.sleep(BEFORE)
        os.replace(folder / "backup.db", place.database)
        replaced = time.monotonic()
        code = await field.server.ended(NOTICED_WITHIN)
        noticed = time.monotonic() - replaced
        if code is None:
            violations.append(f"the server still runs {NOTICED_WITHIN:g} s after its file was replaced")
            await field.server.stop()
        elif code == 0:
            violations.append("the server left as if nothing had happened")
        # Requests sent before the replacement may be answered after it, and count as made before.
        lost = [each for each in field.answers if each.execution is not None and each.sent_at > replaced]
        violations += [f"{each.execution} was accepted after the file was replaced" for each in lost]
        place.effects.rewrite(effects)
        await field.server.start()
        await field.serves(time.monotonic())
        await field.rest()
        violations += [f"{each} hangs" for each in await field.quiet()]
        violations += field.unexpected()
        field.forget(backed_up, replaced)
    verdict = await judge(place)
    # What ran after the backup was taken is not in it: its effects are those of executions that are not there.
    violations += [each for each in verdict.violations if "was seen at work and does not exist" not in each]
    violations += await checked(place.database, folder)
    figures = [
        Figure("accepted_starts", verdict.accepted, "executions", 1),
        Figure("noticed_after", round(noticed, 2), "s", 1),
    ]
    return Outcome("replaced", figures, violations)


def _back_up(database: str, copy: Path) -> None:
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
