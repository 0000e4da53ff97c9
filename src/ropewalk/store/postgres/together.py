"""What many callers ask at the same moment is one question to the database.

To ask costs more than to answer: a round trip, a plan, a connection of the pool. So while a question of a kind is under
way, callers with another one of that kind wait for it, and theirs are the next question together.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from ropewalk.core.errors import Unavailable
from ropewalk.store.access import Row, Value
from ropewalk.store.postgres.connection import statements

MOST: Final = 100
"""So many callers are answered by one question at most."""
_ARGUMENT: Final = re.compile(r"\$(\d+)")


class Kind(Struct, frozen=True):
    """The types of the arguments of a statement, and the column its rows are in the order of, if there are several."""

    types: tuple[str, ...]
    order: str | None = None


KINDS: Final = {
    "get_execution": Kind(("text", "text")),
    "get_idempotency": Kind(("text", "text", "text", "bigint")),
    "short_log": Kind(("text", "bigint", "bigint", "bigint"), "seq"),
}
"""What is asked for every start and every result. All of it is found by an index, so no caller keeps others waiting."""


class _Asked(Struct, eq=False):
    arguments: Sequence[Value]
    answer: asyncio.Future[list[Row]]


class Together:
    """Asks for callers who come together, each kind of question by itself."""

    def __init__(self, ask: Callable[..., Awaitable[list[Row]]]) -> None:
        self._ask = ask
        # By the name of the statement: the callers of the next question while one is under way.
        self._next: dict[str, list[_Asked]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def rows(self, name: str, arguments: Sequence[Value]) -> list[Row]:
        """Every row the statement gives."""
        loop = asyncio.get_running_loop()
        asked = _Asked(arguments, loop.create_future())
        if name in self._next:
            self._next[name].append(asked)
        else:
            self._next[name] = [asked]
            task = loop.create_task(self._run(name))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asked.answer

    async def _run(self, name: str) -> None:
        while callers := self._next[name][:MOST]:
            del self._next[name][:MOST]
            if callers := [each for each in callers if not each.answer.done()]:
                await self._answer(name, callers)
        del self._next[name]

    async def _answer(self, name: str, callers: list[_Asked]) -> None:
        try:
            found = await self._found(name, callers)
        except Exception as error:  # noqa: BLE001 -- every caller is told, and may know what to do about it
            if len(callers) == 1 or isinstance(error, Unavailable):
                _refuse(callers, error)
            else:
                # What is wrong with the question of one caller concerns no other.
                for each in callers:
                    await self._answer(name, [each])
            return
        for each, rows in zip(callers, found, strict=True):
            if not each.answer.done():
                each.answer.set_result(rows)

    async def _found(self, name: str, callers: list[_Asked]) -> list[list[Row]]:
        if len(callers) == 1:
            return [await self._ask(statements()[name], *callers[0].arguments)]
        columns = [list(column) for column in zip(*(each.arguments for each in callers), strict=True)]
        found: list[list[Row]] = [[] for _ in callers]
        for place, *row in await self._ask(of_many(name), *columns):
            found[place - 1].append(tuple(row))
        return found


def _refuse(callers: list[_Asked], error: Exception) -> None:
    for each in callers:
        if not each.answer.done():
            each.answer.set_exception(error)


@cache
def of_many(name: str) -> str:
    """The statement for many callers: an array per argument; each row begins with the place of its caller."""
    kind = KINDS[name]
    columns = ", ".join(f"cast(${place} as {each}[])" for place, each in enumerate(kind.types, 1))
    names = ", ".join(f"asked_{place}" for place in range(1, len(kind.types) + 1))
    order = "" if kind.order is None else f" order by asked.place, found.{kind.order}"
    one = _ARGUMENT.sub(r"asked.asked_\1", statements()[name]).rstrip().rstrip(";")
    return (
        f"select asked.place, found.* from unnest({columns}) with ordinality as asked ({names}, place) "
        f"cross join lateral ({one}) as found{order}"
    )
