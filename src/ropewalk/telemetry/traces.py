"""Traces: a span for each execution, a span for each attempt inside it, sent by OTLP.

Spans are made when what they tell of is over and durable. Their ids follow from the log, so that those of one execution
fit together whichever worker tells of them; the trace is the one the start continued, or the execution's own.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from ropewalk.core.errors import InvalidInput
from ropewalk.core.events import ExecutionAccepted
from ropewalk.core.state import ExecutionState, RunState
from ropewalk.core.trace import span_id, trace_id
from ropewalk.telemetry.facts import RunFact
from ropewalk.telemetry.sending import MISSING, PATIENCE

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

EXECUTION: Final = "execution"
RUN: Final = "run.execute"


class Spans:
    """Tells of executions and runs that are over, as spans of this provider."""

    def __init__(self, provider: "TracerProvider", ids: "GivenIds") -> None:
        self._provider = provider
        self._ids = ids
        self._tracer = provider.get_tracer("ropewalk")

    def run(self, accepted: ExecutionAccepted, run: RunFact) -> None:
        """One attempt, under its execution."""
        about = {
            "ropewalk.workspace": accepted.workspace,
            "ropewalk.workflow": accepted.workflow,
            "ropewalk.execution": run.execution,
            "ropewalk.run": run.id,
            "ropewalk.node": run.node,
            "ropewalk.attempt": run.attempt,
            "ropewalk.state": run.state,
        }
        if run.item is not None:
            about["ropewalk.item"] = run.item
        if run.error_type is not None:
            about["error.type"] = run.error_type
        status = Status(StatusCode.OK if run.state == RunState.SUCCESS else StatusCode.ERROR)
        ended = run.finished_at or run.started_at
        self._tell(RUN, _execution_context(accepted), span_id(run.id), (run.started_at, ended), about, status)

    def execution(self, accepted: ExecutionAccepted, state: ExecutionState, ended_at: int) -> None:
        """One execution, from its acceptance on; below the span that started it, if the start named one."""
        about = {
            "ropewalk.workspace": accepted.workspace,
            "ropewalk.workflow": accepted.workflow,
            "ropewalk.version": accepted.version,
            "ropewalk.execution": accepted.execution,
            "ropewalk.trigger": str(accepted.trigger),
            "ropewalk.state": str(state),
        }
        if accepted.parent is not None:
            about["ropewalk.parent_execution"] = accepted.parent.execution
        status = Status(StatusCode.OK if state is ExecutionState.SUCCESS else StatusCode.ERROR)
        self._ids.trace = int(trace_id(accepted.execution, accepted.trace), 16)
        span = span_id(accepted.execution)
        self._tell(EXECUTION, _started_by(accepted), span, (accepted.at, ended_at), about, status)

    def _tell(self, name: str, parent: SpanContext | None, span: str, times: tuple[int, int],
              about: Mapping[str, Any], status: Status) -> None:  # fmt: skip
        self._ids.span = int(span, 16)
        context = None if parent is None else trace.set_span_in_context(NonRecordingSpan(parent))
        told = self._tracer.start_span(name, context, SpanKind.INTERNAL, about, start_time=times[0] * 1_000)
        told.set_status(status)
        told.end(times[1] * 1_000)

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def _started_by(accepted: ExecutionAccepted) -> SpanContext | None:
    if accepted.trace is None:
        return None
    _, whole, span, flags = accepted.trace.split("-")
    return SpanContext(int(whole, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))


def _execution_context(accepted: ExecutionAccepted) -> SpanContext:
    """The span of the execution, which may be told by another worker; sampled if that is."""
    above = _started_by(accepted)
    flags = TraceFlags(TraceFlags.SAMPLED) if above is None else above.trace_flags
    whole = int(trace_id(accepted.execution, accepted.trace), 16)
    return SpanContext(whole, int(span_id(accepted.execution), 16), is_remote=True, trace_flags=flags)


class GivenIds:
    """Hands out the ids it was given, for the one span that is about to be made."""

    def __init__(self) -> None:
        self.trace = 0
        self.span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span

    def is_trace_id_random(self) -> bool:
        """A UUIDv7 begins with its time."""
        return False


def open_spans(endpoint: str, service_name: str) -> Spans:
    """Spans that are sent to an OTLP/HTTP receiver, in batches, from a thread of their own."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise InvalidInput(MISSING) from error
    ids = GivenIds()
    resource = Resource.create({"service.name": service_name})
    provider = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)  # type: ignore[arg-type]  # its base is in a package that may be missing
    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=PATIENCE)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Spans(provider, ids)
