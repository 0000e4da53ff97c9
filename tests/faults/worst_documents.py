"""Worst documents that the limits allow: while they compute, the server answers all other callers."""

from pathlib import Path
from typing import Final

from tests.faults.figures import Figure, Outcome
from tests.faults.health import Health, measured
from tests.faults.worst import WORST

BAR: Final = 100.0
"""One `/healthz` in a hundred may take so long (ms)."""


def worst_documents(folder: Path, seconds: float, most: int | None = None) -> Outcome:
    """Ask for the server's health beside each of these documents, or the first of them."""
    figures: list[Figure] = []
    violations: list[str] = []
    late: list[str] = []
    for number, worst in enumerate(WORST[:most]):
        place = folder / str(number)
        place.mkdir(parents=True)
        health = measured(place, worst, seconds)
        name = worst.name.replace(" ", "_").replace(",", "")
        figures.append(Figure(f"healthz_ms_p99_beside_{name}", round(health.p99, 1), "ms", health.count))
        violations += [f"{worst.name}: {each}" for each in _faults(health)]
        if health.p99 > BAR:
            late.append(f"beside {worst.name}, one /healthz in a hundred took {health.p99:.0f} ms")
    return Outcome("worst", figures, violations, late)


def _faults(health: Health) -> list[str]:
    return [f"{count} answers of {status}" for status, count in health.statuses.items() if status.startswith("5")]
