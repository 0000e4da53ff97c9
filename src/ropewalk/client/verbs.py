"""A talk as a method: a blocking client gets the answer, an async client gets something to await."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from ropewalk.client.talking import Request, Series, Talk, ask, pages

P = ParamSpec("P")
Answer = TypeVar("Answer")


class Line(Protocol):
    """Carries talks out; `patience` is how many seconds it goes on trying."""

    patience: float


class BlockingLine(Line, Protocol):
    def carry_out(self, talk: Talk[Answer]) -> Answer: ...
    def listen(self, talk: Series[Answer]) -> Iterator[Answer]: ...


class AwaitingLine(Line, Protocol):
    async def carry_out(self, talk: Talk[Answer]) -> Answer: ...
    def listen(self, talk: Series[Answer]) -> AsyncIterator[Answer]: ...


class Speaker:
    """An object with a line to a server."""

    line: Any

    def _ask(self, request: Request) -> Talk[Any]:
        return ask(request, self.line.patience)

    def _pages(self, path: str, most: int | None = None, **params: Any) -> Series[Any]:
        return pages(path, params, self.line.patience, most)


class Blocking(Speaker):
    """A speaker whose verbs answer when they return."""

    line: BlockingLine


class Awaiting(Speaker):
    """A speaker whose verbs are awaited."""

    line: AwaitingLine


class Verb(Generic[P, Answer]):
    """A method that carries a talk out."""

    def __init__(self, talk: Callable[Concatenate[Any, P], Talk[Answer]]) -> None:
        self._talk = talk
        update_wrapper(self, talk)  # type: ignore[arg-type]  # called through the method it makes

    @overload
    def __get__(self, speaker: Blocking, kind: type) -> Callable[P, Answer]: ...
    @overload
    def __get__(self, speaker: Awaiting, kind: type) -> Callable[P, Awaitable[Answer]]: ...
    @overload
    def __get__(self, speaker: None, kind: type) -> "Verb[P, Answer]": ...
    def __get__(self, speaker: Blocking | Awaiting | None, kind: type) -> Any:
        if speaker is None:
            return self

        def say(*arguments: P.args, **options: P.kwargs) -> Any:
            return speaker.line.carry_out(self._talk(speaker, *arguments, **options))

        return update_wrapper(say, self._talk)


class Listing(Generic[P, Answer]):
    """A method that gives one item after the other, as the talk tells of them."""

    def __init__(self, talk: Callable[Concatenate[Any, P], Series[Answer]]) -> None:
        self._talk = talk
        update_wrapper(self, talk)  # type: ignore[arg-type]  # called through the method it makes

    @overload
    def __get__(self, speaker: Blocking, kind: type) -> Callable[P, Iterator[Answer]]: ...
    @overload
    def __get__(self, speaker: Awaiting, kind: type) -> Callable[P, AsyncIterator[Answer]]: ...
    @overload
    def __get__(self, speaker: None, kind: type) -> "Listing[P, Answer]": ...
    def __get__(self, speaker: Blocking | Awaiting | None, kind: type) -> Any:
        if speaker is None:
            return self

        def listen(*arguments: P.args, **options: P.kwargs) -> Any:
            return speaker.line.listen(self._talk(speaker, *arguments, **options))

        return update_wrapper(listen, self._talk)


def verb(talk: Callable[Concatenate[Any, P], Talk[Answer]]) -> Verb[P, Answer]:
    """Makes a method of a talk."""
    return Verb(talk)


def listing(talk: Callable[Concatenate[Any, P], Series[Answer]]) -> Listing[P, Answer]:
    """Makes a method of a talk that tells one thing after the other."""
    return Listing(talk)
