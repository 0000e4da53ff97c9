"""Gathers what is wrong with a document: the first problems in full, the rest as a number."""

from collections.abc import Iterable

from ropewalk.core.canonical import Path
from ropewalk.core.errors import Problem


class Report:
    """Problems in the order they were found; bounded, so that 100,000 mistakes make a readable answer."""

    __slots__ = ("hidden", "limit", "problems")

    def __init__(self, limit: int = 100) -> None:
        self.problems: list[Problem] = []
        self.limit = limit
        self.hidden = 0

    def add(self, path: Path, message: str) -> None:
        """Notes one problem, or only counts it when there are enough."""
        if self.is_full:
            self.hidden += 1
        else:
            self.problems.append(Problem(path, message))

    def extend(self, problems: Iterable[Problem]) -> None:
        """Notes several problems."""
        for problem in problems:
            self.add(problem.path, problem.message)

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted, so that finding their exact place is wasted work."""
        return len(self.problems) >= self.limit

    @property
    def count(self) -> int:
        """How many problems there are, counted ones included."""
        return len(self.problems) + self.hidden

    def result(self) -> list[Problem]:
        """What to tell the author."""
        rest = [Problem((), f"… and {self.hidden} more problems")] if self.hidden else []
        return self.problems + rest
