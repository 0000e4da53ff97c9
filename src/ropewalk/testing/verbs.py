"""One method for two kinds of tests: a plain test gets the answer, an async test gets something to await."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
Answer = TypeVar("Answer")


class Loop:
    """The loop of a plain test: it runs while one of our methods is called, and stands still in between."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def run(self, work: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """What the work gives; RuntimeError in an async test, whose own loop is running."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(work())
        raise RuntimeError(
            "ropewalk_engine is for plain tests; in an async test write: async with ropewalk.testing.open() as engine"
        )


class Blocking:
    """An object whose verbs answer when they return."""

    _loop: Loop


class Awaiting:
    """An object whose verbs are awaited."""


class Verb(Generic[P, Answer]):
    """A method written once as a coroutine."""

    def __init__(self, work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]]) -> None:
        self._work = work
        update_wrapper(self, work)  # type: ignore[arg-type]  # called through the method it makes

    @overload
    def __get__(self, of: Blocking, kind: type) -> Callable[P, Answer]: ...
    @overload
    def __get__(self, of: Awaiting, kind: type) -> Callable[P, Coroutine[Any, Any, Answer]]: ...
    @overload
    def __get__(self, of: None, kind: type) -> "Verb[P, Answer]": ...
    def __get__(self, of: Blocking | Awaiting | None, kind: type) -> Any:
        if of is None:
            return self

        def say(*arguments: P.args, **options: P.kwargs) -> Any:
            if isinstance(of, Blocking):
                return of._loop.run(lambda: self._work(of, *arguments, **options))
            return self._work(of, *arguments, **options)

        return update_wrapper(say, self._work)


def verb(work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]]) -> Verb[P, Answer]:
    """Makes a method of both twins of a coroutine function."""
    return Verb(work)
