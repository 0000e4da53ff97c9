"""The table for people: our figures beside the floor's, and beside the bars."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from rich import box
from rich.table import Table

from ropewalk.bench.contenders import FLOOR, NATIVE
from ropewalk.bench.figures import Figure

TIMES: Final = "×"


class Bar(Struct, frozen=True):
    """Two marks to reach: by our figure divided by the floor's where the unit is ×, by our figure alone elsewhere."""

    first: float
    then: float
    unit: str = TIMES
    is_least: bool = False

    def is_met(self, value: float, mark: float) -> bool:
        return value >= mark if self.is_least else value <= mark

    def shown(self, value: float | None, mark: float) -> str:
        text = f"{'≥' if self.is_least else '≤'} {mark:g} {self.unit}"
        return text if value is None else f"{text} {'✓' if self.is_met(value, mark) else '✗'}"


BARS: Final[Mapping[tuple[str, str], Bar]] = {
    ("W1", "latency_ms_p50"): Bar(2, 1.6),
    ("W2", "ms_per_node"): Bar(2, 1.3),
    ("W3", "ms"): Bar(5, 3),
    ("W3k", "ms"): Bar(5, 3),
    ("W4", "executions_per_s"): Bar(0.40, 0.55, is_least=True),
    ("W4", "peak_rss_mb"): Bar(120, 80, "MB"),
    ("W5", "seconds_lost"): Bar(1, 0.3, "s"),
}


def table(figures: Sequence[Figure]) -> Table:
    """One row per figure of the engine, in the order they were measured."""
    shown = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title="ratio: native ÷ floor", title_justify="left"
    )
    for column in ("workload", "metric"):
        shown.add_column(column, no_wrap=True)
    for column in (NATIVE, FLOOR, "ratio", "first bar", "then"):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in rows(figures):
        shown.add_row(*row)
    return shown


def rows(figures: Sequence[Figure]) -> Iterator[tuple[str, ...]]:
    floor = {(each.workload, each.metric): each.value for each in figures if each.engine == FLOOR}
    for each in figures:
        if each.engine == NATIVE:
            yield _row(each, floor.get((each.workload, each.metric)))


def _row(figure: Figure, floor: float | None) -> tuple[str, ...]:
    ratio = figure.value / floor if floor else None
    bar = BARS.get((figure.workload, figure.metric))
    marks = ("", "")
    if bar is not None:
        reached = ratio if bar.unit == TIMES else figure.value
        marks = (bar.shown(reached, bar.first), bar.shown(reached, bar.then))
    below = "–" if floor is None else _number(floor)
    return (
        figure.workload,
        figure.metric,
        _number(figure.value),
        below,
        "–" if ratio is None else f"{ratio:.2f} ×",
        *marks,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
