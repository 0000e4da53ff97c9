"""The table for people: our figures beside those they are measured by, and the bars."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from rich import box
from rich.table import Table

from ropewalk.bench.contenders import (
    DOORS,
    FLEET_1,
    FLEET_2,
    FLOOR,
    HTTP,
    NATIVE,
    NATIVE_1,
    NATIVE_2,
    NATIVE_2_OWN,
    NATIVE_4,
    PYTHON,
)
from ropewalk.bench.figures import Figure
from ropewalk.bench.stores import SQLITE, STORES

TIMES: Final = "×"
BESIDE: Final = {
    NATIVE: FLOOR,
    NATIVE_1: NATIVE,
    NATIVE_2: NATIVE,
    NATIVE_2_OWN: NATIVE,
    PYTHON: NATIVE,
    HTTP: NATIVE,
    FLEET_1: NATIVE,
    FLEET_2: FLEET_1,
}
"""Whose figure stands beside each engine's: the floor beneath one worker, one worker beneath several and beneath the
doors to it."""


class Bar(Struct, frozen=True):
    """Marks to reach: by our figure divided by the one beside it where the unit is ×, by our figure alone elsewhere."""

    first: float
    then: float | None = None
    unit: str = TIMES
    is_least: bool = False
    stores: tuple[str, ...] = STORES

    def is_met(self, value: float, mark: float) -> bool:
        return value >= mark if self.is_least else value <= mark

    def shown(self, value: float | None, mark: float | None) -> str:
        if mark is None:
            return ""
        text = f"{'≥' if self.is_least else '≤'} {mark:g} {self.unit}"
        return text if value is None else f"{text} {'✓' if self.is_met(value, mark) else '✗'}"


_SECOND_WORKER: Final = Bar(1.1, 1.3, is_least=True)
BARS: Final[Mapping[tuple[str, str, str], Bar]] = {
    ("W1", "latency_ms_p50", NATIVE): Bar(2, 1.6),
    ("W2", "ms_per_node", NATIVE): Bar(2, 1.3),
    ("W3", "ms", NATIVE): Bar(5, 3),
    ("W3k", "ms", NATIVE): Bar(5, 3),
    ("W4", "executions_per_s", NATIVE): Bar(0.40, 0.55, is_least=True),
    ("W4", "executions_per_s", NATIVE_2): _SECOND_WORKER,
    ("W4", "executions_per_s", NATIVE_2_OWN): _SECOND_WORKER,
    ("W4", "executions_per_s", PYTHON): Bar(0.80, is_least=True),
    ("W1", "latency_ms_p50", HTTP): Bar(4, 2.5, "ms"),
    ("W4", "executions_per_s", HTTP): Bar(1_500, 2_500, "/s", is_least=True),
    ("W1", "latency_ms_p50", FLEET_1): Bar(8, 5, "ms"),
    ("W1", "latency_ms_p99", FLEET_1): Bar(30, 15, "ms"),
    ("W1", "notice_ms_p95", FLEET_1): Bar(10, None, "ms"),
    ("W4", "executions_per_s", FLEET_1): Bar(1_200, 2_000, "/s", is_least=True),
    ("W4", "executions_per_s", FLEET_2): Bar(1.2, 1.5, is_least=True),
    **{("W4", "peak_rss_mb", each): Bar(120, 80, "MB") for each in BESIDE},
    ("W5", "seconds_lost", NATIVE): Bar(1, 0.3, "s", stores=(SQLITE,)),
    # The lease of 15 s, and 5 more.
    ("W5", "takeover_seconds", NATIVE): Bar(20, 3, "s"),
    **{("dispatch", "dispatch_ms_p95", each): Bar(75, 10, "ms") for each in (NATIVE, NATIVE_2)},
    ("API", "starts_per_s", NATIVE): Bar(0.5, 0.7, is_least=True),
    ("API", "dispatch_ms_p95", NATIVE): Bar(75, 10, "ms"),
    ("lease", "lease_ms_p95", NATIVE_4): Bar(10, 4, "ms"),
    **{("refill", "refill_ms_p95", each): Bar(100, None, "ms") for each in (NATIVE, NATIVE_2)},
    ("fairness", "fairness_ms", NATIVE): Bar(100, None, "ms"),
}


def table(figures: Sequence[Figure]) -> Table:
    """One row per figure of an engine, in the order they were measured."""
    shown = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title=_title(figures), title_justify="left"
    )
    for column in ("workload", "metric", "engine"):
        shown.add_column(column, no_wrap=True)
    for column in ("figure", "beside", "ratio", "first bar", "then"):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in rows(figures):
        shown.add_row(*row)
    return shown


def _title(figures: Sequence[Figure]) -> str:
    found = dict.fromkeys(each.engine for each in figures)
    doors = [each for each in found if each.partition("-")[0] in DOORS]
    above = {"several workers": NATIVE} if NATIVE_2 in found else {each: BESIDE[each] for each in doors}
    beside = (f"{each} ÷ {below}" for each, below in above.items())
    return ", ".join([f"{figures[0].store}; ratio: native ÷ floor", *beside])


def rows(figures: Sequence[Figure]) -> Iterator[tuple[str, ...]]:
    found = {(each.workload, each.metric, each.engine): each.value for each in figures}
    for each in figures:
        if each.engine != FLOOR:
            yield _row(each, found.get((each.workload, each.metric, BESIDE.get(each.engine, FLOOR))))


def _row(figure: Figure, beside: float | None) -> tuple[str, ...]:
    ratio = figure.value / beside if beside else None
    return (
        figure.workload,
        figure.metric,
        figure.engine,
        _number(figure.value),
        "–" if beside is None else _number(beside),
        "–" if ratio is None else f"{ratio:.2f} ×",
        *_marks(figure, ratio),
    )


def _marks(figure: Figure, ratio: float | None) -> tuple[str, str]:
    bar = BARS.get((figure.workload, figure.metric, figure.engine))
    if bar is None or figure.store not in bar.stores:
        return "", ""
    reached = ratio if bar.unit == TIMES else figure.value
    return bar.shown(reached, bar.first), bar.shown(reached, bar.then)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
