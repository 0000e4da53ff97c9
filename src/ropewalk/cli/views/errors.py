"""What is said when a command fails: what happened, where, and what to do next."""

import json
import sys
from collections.abc import Callable
from typing import Final

from ropewalk.cli.backend.project import chosen
from ropewalk.cli.exit_codes import Code, code_of
from ropewalk.cli.views.text import plain
from ropewalk.core.errors import Invalid, InvalidTransition, NotFound, Problem, RopewalkError, Unauthenticated
from ropewalk.documents import Document, PlacedProblem, problems_with_lines

_TOLD: Final = "_is_told"
Hint = Callable[..., str]
_HINTS: Final[dict[type[RopewalkError], Callable[[Hint], str]]] = {
    InvalidTransition: lambda hint: f"`{hint('explain', 'EXECUTION')}` says where it stands",
    Unauthenticated: lambda hint: (
        "the token for a server comes from ROPEWALK_TOKEN, else from what `ropewalk login URL` has kept"
    ),
    NotFound: lambda hint: (
        f"`{hint('executions', 'ls')}` and `{hint('dlq', 'ls')}` say what there is; is this the right place?"
    ),
}


class InvalidFile(Invalid):
    """A file has something to be mended; every problem says on which line."""

    def __init__(self, error: Invalid, document: Document) -> None:
        super().__init__(_placed(problem.path, problem.message, document) for problem in error.problems)
        self.lines = problems_with_lines(error, document)


def _placed(path: tuple[str | int, ...], message: str, document: Document) -> PlacedProblem:
    return PlacedProblem(path, message, document.name, document.places.line_of(path), 1)


def report_error(error: Exception, *, is_json: bool) -> Code | None:
    """Says what went wrong and how the command ends; None for a mistake of ours, which keeps its traceback."""
    if isinstance(error, OSError) and error.filename is not None:
        error = RopewalkError(f"{error.filename}: {error.strerror}")
    if not isinstance(error, RopewalkError):
        return None
    if is_json:
        print(json.dumps({"error": as_json(error)}))
    if not is_told(error):
        for line in lines_of(error):
            print(plain(line), file=sys.stderr)
    return code_of(error)


def mark_told(error: Exception) -> None:
    """The log of the process has told this error already."""
    error.__dict__[_TOLD] = True


def is_told(error: Exception) -> bool:
    return _TOLD in error.__dict__


def lines_of(error: RopewalkError) -> list[str]:
    """The error as people read it."""
    if isinstance(error, InvalidFile):
        return error.lines
    if isinstance(error, Invalid):
        return [_line(problem) for problem in error.problems]
    advise = next((words for kind, words in _HINTS.items() if isinstance(error, kind)), None)
    return [f"ropewalk: {error}", *([] if advise is None else [f"  {advise(_hint)}"])]


def _hint(*words: str) -> str:
    """A command to type next, with the options of the one that failed."""
    project = chosen.get()
    return project.hint(*words) if project is not None else " ".join(("ropewalk", *words))


def _line(problem: Problem) -> str:
    if isinstance(problem, PlacedProblem):
        return str(problem)
    return f"ropewalk: {problem}" if problem.path else f"ropewalk: {problem.message}"


def as_json(error: RopewalkError) -> dict[str, object]:
    """The error as programs read it."""
    problems = error.problems if isinstance(error, Invalid) else ()
    return {
        "type": type(error).__name__,
        "message": str(error),
        "problems": [_problem_json(problem) for problem in problems],
    }


def _problem_json(problem: Problem) -> dict[str, object]:
    if isinstance(problem, PlacedProblem):
        where = {"file": problem.document, "line": problem.line, "column": problem.column}
        return {**where, "path": problem.where, "message": problem.message}
    return {"path": problem.where, "message": problem.message}
