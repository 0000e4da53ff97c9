"""A real OTLP/HTTP receiver on loopback: what is posted to it is decoded and kept."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Receiver:
    """The spans that came, and who sent them."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.paths: set[str] = set()
        self.metrics: dict[str, Metric] = {}

    def take(self, path: str, body: bytes) -> None:
        self.paths.add(path)
        if path == "/v1/metrics":
            self._take_metrics(body)
            return
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = (each.value.string_value for each in sent.resource.attributes if each.key == "service.name")
            self.services.update(named)
            self.spans += [span for scope in sent.scope_spans for span in scope.spans]

    def _take_metrics(self, body: bytes) -> None:
        for sent in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            self.metrics |= {metric.name: metric for scope in sent.scope_metrics for metric in scope.metrics}

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens until the end."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.take(self.path, self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Tests are silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


def attributes(span: Span) -> dict[str, Any]:
    """What a span says about itself."""
    found = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        found[each.key] = getattr(each.value, str(kind))
    return found
