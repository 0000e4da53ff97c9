"""The figures again, sent by OTLP to a collector that does not scrape them."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import Metric

from ropewalk.core.errors import InvalidInput
from ropewalk.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client.samples import Sample as Point

PATIENCE: Final = 5.0
"""How long a receiver may take (s); a process that leaves waits no longer for one that is away."""
MISSING: Final = "OTLP needs more packages than are installed: pip install 'ropewalk[otel]'"


class Sender:
    """Sends all figures at once, as they are at that moment."""

    def __init__(self, metrics: Metrics, endpoint: str, service_name: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.sdk.resources import Resource
        except ImportError as error:
            raise InvalidInput(MISSING) from error
        self._metrics = metrics
        self._since = time.time_ns()
        self._resource = Resource.create({"service.name": service_name})
        self._exporter = OTLPMetricExporter(f"{endpoint.rstrip('/')}/v1/metrics", timeout=PATIENCE)

    def send(self) -> None:
        """Blocks until they are sent, or have been given up: the next time everything is sent again."""
        from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        now = time.time_ns()
        found = [_metric(family, self._since, now) for family in self._metrics.registry.collect()]
        scope = ScopeMetrics(InstrumentationScope("ropewalk"), [each for each in found if each is not None], "")
        self._exporter.export(MetricsData([ResourceMetrics(self._resource, [scope], "")]))

    def close(self) -> None:
        """Send what there is, for the last time."""
        self.send()
        self._exporter.shutdown()


def _metric(family: Metric, since: int, now: int) -> Any:
    """One family in the words of OTLP; None if there is nothing to tell of it yet."""
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Histogram, Sum
    from opentelemetry.sdk.metrics.export import Metric as Told

    points = [each for each in family.samples if not each.name.endswith("_created")]
    if not points:
        return None
    data: Gauge | Histogram | Sum
    if family.type == "histogram":
        data = Histogram(_histogram_points(points, since, now), AggregationTemporality.CUMULATIVE)
    elif family.type == "counter":
        data = Sum(_numbers(points, since, now), AggregationTemporality.CUMULATIVE, is_monotonic=True)
    else:
        data = Gauge(_numbers(points, since, now))
    unit = "s" if family.name.endswith("_seconds") else "1"
    return Told(family.name, family.documentation, unit, data)


def _numbers(points: Iterable["Point"], since: int, now: int) -> list[Any]:
    from opentelemetry.sdk.metrics.export import NumberDataPoint

    return [NumberDataPoint(each.labels, since, now, each.value) for each in points]


def _histogram_points(points: Iterable["Point"], since: int, now: int) -> list[Any]:
    """One for each set of labels; Prometheus counts what is below a bound, OTLP what is between two."""
    groups: dict[tuple[tuple[str, str], ...], list[Point]] = {}
    for each in points:
        labels = tuple((name, value) for name, value in each.labels.items() if name != "le")
        groups.setdefault(labels, []).append(each)
    return [_histogram_point(dict(labels), group, since, now) for labels, group in groups.items()]


def _histogram_point(labels: dict[str, str], group: list["Point"], since: int, now: int) -> Any:
    from opentelemetry.sdk.metrics.export import HistogramDataPoint

    below = [(each.labels["le"], int(each.value)) for each in group if each.name.endswith("_bucket")]
    counts = [count - before for (_, count), before in zip(below, [0, *(count for _, count in below)], strict=False)]
    total = next(each.value for each in group if each.name.endswith("_sum"))
    return HistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=since,
        time_unix_nano=now,
        count=below[-1][1],
        sum=total,
        bucket_counts=counts,
        explicit_bounds=[float(bound) for bound, _ in below[:-1]],
        min=None,  # type: ignore[arg-type]  # not known, and the protocol lets it be
        max=None,  # type: ignore[arg-type]  # the same
    )
