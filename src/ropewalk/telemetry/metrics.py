"""The figures of one process, as Prometheus reads them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from ropewalk.telemetry.tallies import Spread, Spreads, Tallies, Tally

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

_DELAYS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800)
_ATTEMPTS: Final = (1, 2, 3, 4, 5, 10, 20, 50, 100)


class Sample(Struct, frozen=True):
    """What only the store knows: counted up to a bound, the same for every process that shares it."""

    waiting: int
    at_capacity: int
    dead_letters: int
    breakers: Mapping[str, int]
    set_aside: int = 0


class Metrics:
    """Counts what happens, and shows it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.started = self._tallies("executions_started", "Executions that got their first slot: the queue's rate.")
        self.ended = self._tallies("executions_ended", "Executions by how they ended.", "state")
        self.dispatch_failures = self._tallies("dispatch_failures", "Claims of executions that could not be loaded.")
        self.claims_at_capacity = self._tallies("claims_at_capacity", "Claims in vain: all that waits has no slot.")
        self.dispatch_delay = self._spreads("dispatch_delay_seconds", "From accepted to the first slot.", _DELAYS)
        self.attempts = self._spreads("node_attempts", "Attempts a node or an item took to its end.", _ATTEMPTS)
        self.runs = self._tallies("runs_ended", "Attempts by how they ended.", "state", "error_type")
        self.run_time = self._spreads("run_seconds", "How long attempts took, waits included.", _DELAYS, "state")
        self.lease_time = self._spreads("lease_seconds", "How long it took to lease runs.", _DELAYS)
        self.requests = self._tallies("http_requests", "Requests by operation and status.", "operation", "status")
        self.request_time = self._spreads("http_request_seconds", "How long requests took.", _DELAYS, "operation")
        self._waiting = self._gauge("queue_waiting", "Executions that wait for a slot, up to 10,000.")
        self._full = self._gauge("workspaces_at_capacity", "Workspaces whose executions wait for a slot, up to 100.")
        self._dead_letters = self._gauge("dead_letters", "Dead letters that are not resolved, up to 100,000.")
        self._set_aside = self._gauge(
            "executions_set_aside", "Executions set aside after deaths of workers, up to 1,000."
        )
        self._breakers = self._gauge("breakers", "Circuit breakers by state.", "state")
        self._has_store = self._gauge(
            "store_up", "1 while the store answers; what it counted last is shown until then."
        )

        # Looking a label up costs more than counting; there are a few dozen ways to end.
        self._ends: dict[str, Tally] = {}
        self._ways: dict[tuple[str, str | None], tuple[Tally, Spread]] = {}
        self._answers: dict[tuple[str, int], tuple[Tally, Spread]] = {}

    def execution_ended(self, state: str) -> None:
        """An execution ended in this state."""
        end = self._ends.get(state)
        if end is None:
            end = self._ends[state] = self.ended.labels(str(state))
        end.inc()

    def run_ended(self, state: str, error_type: str | None, seconds: float) -> None:
        """An attempt ended this way, after so long."""
        way = self._ways.get((state, error_type))
        if way is None:
            way = (self.runs.labels(state, error_type or ""), self.run_time.labels(state))
            self._ways[state, error_type] = way
        way[0].inc()
        way[1].observe(seconds)

    def request_ended(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered, after so long."""
        answer = self._answers.get((operation, status))
        if answer is None:
            answer = (self.requests.labels(operation, str(status)), self.request_time.labels(operation))
            self._answers[operation, status] = answer
        answer[0].inc()
        answer[1].observe(seconds)

    def count_stale_writes(self, count: Callable[[], int]) -> None:
        """Shows what the store counts: writes of a worker that was taken over from."""
        about = "Writes refused because another worker had taken over."
        self.registry.register(_Counted("ropewalk_stale_writes_refused", about, count))

    def count_rewinds(self, count: Callable[[], int]) -> None:
        """Shows what the store counts: how often the database went back in time."""
        about = "How often this process found that the database went back in time."
        self.registry.register(_Counted("ropewalk_store_rewinds", about, count))

    def show(self, sample: Sample | None) -> None:
        """What the store says; None if it does not answer."""
        self._has_store.set(0 if sample is None else 1)
        if sample is None:
            return
        self._waiting.set(sample.waiting)
        self._full.set(sample.at_capacity)
        self._dead_letters.set(sample.dead_letters)
        self._set_aside.set(sample.set_aside)
        for state in ("CLOSED", "OPEN", "HALF_OPEN"):
            self._breakers.labels(state).set(sample.breakers.get(state, 0))

    def render(self) -> bytes:
        """Everything, in the text Prometheus reads."""
        return generate_latest(self.registry)

    def _tallies(self, name: str, about: str, *labels: str) -> Tallies:
        tallies = Tallies(name, about, labels)
        self.registry.register(tallies)
        return tallies

    def _spreads(self, name: str, about: str, bounds: tuple[float, ...], *labels: str) -> Spreads:
        spreads = Spreads(name, about, bounds, labels)
        self.registry.register(spreads)
        return spreads

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"ropewalk_{name}", about, labels, registry=self.registry)


class _Counted(Collector):
    """A counter that another object keeps."""

    def __init__(self, name: str, about: str, count: Callable[[], int]) -> None:
        self._name = name
        self._about = about
        self._count = count

    def collect(self) -> Iterable[CounterMetricFamily]:
        yield CounterMetricFamily(self._name, self._about, value=self._count())
