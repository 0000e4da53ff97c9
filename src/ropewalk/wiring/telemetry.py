"""What operators see of an engine: counted, traced and sent, as far as that is set."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from ropewalk.store.access import Store
from ropewalk.wiring.settings import LogForm, TelemetrySettings

if TYPE_CHECKING:
    from ropewalk.engines.base import Engine
    from ropewalk.telemetry.metrics import Metrics

METRICS_EVERY = 15.0
SENDING = 10.0
"""How long the receiver of telemetry is waited for (s)."""

_log = logging.getLogger("ropewalk.telemetry")


@asynccontextmanager
async def watched(engine: "Engine", settings: TelemetrySettings, metrics: "Metrics | None") -> AsyncIterator[None]:
    """What the engine does is counted and traced, as far as the settings ask for it; else it has no observer."""
    if metrics is None and settings.otlp_endpoint is None and settings.log is LogForm.PLAIN:
        yield
        return
    # Here, since most commands do without them.
    from ropewalk.telemetry.metrics import Metrics
    from ropewalk.telemetry.traces import open_spans
    from ropewalk.telemetry.watch import Watch

    endpoint = settings.otlp_endpoint
    spans = None if endpoint is None else open_spans(endpoint, settings.service_name)
    kept = Metrics() if metrics is None else metrics
    kept.count_stale_writes(lambda: engine.store.stale_writes)
    kept.count_rewinds(lambda: len(engine.store.rewinds))
    observer = Watch(kept, spans)
    engine.observe(observer)
    try:
        async with nullcontext() if endpoint is None else _sent(engine.store, kept, endpoint, settings.service_name):
            yield
    finally:
        await _on_a_thread(observer.close)


@asynccontextmanager
async def _sent(store: Store, metrics: "Metrics", endpoint: str, service_name: str) -> AsyncIterator[None]:
    """The figures are sent now and then, and at the end."""
    from ropewalk.service.metrics import Sampler
    from ropewalk.telemetry.sending import Sender

    sender, sampler = Sender(metrics, endpoint, service_name), Sampler(store)

    async def send() -> None:
        while True:
            await asyncio.sleep(METRICS_EVERY)
            try:
                metrics.show(await sampler.sample())
                await _on_a_thread(sender.send)
            except Exception:  # noqa: BLE001 -- the figures of one moment; those of the next are sent again
                _log.exception("the metrics cannot be sent now; it is tried again")

    sending = asyncio.get_running_loop().create_task(send())
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await _on_a_thread(sender.close)


async def _on_a_thread(send: Callable[[], None]) -> None:
    """Send something to a receiver that may be silent, or have a name without an answer; abandoned if it takes long."""
    from ropewalk.nodes.work import Threads  # here, as in `open_service`

    threads = Threads(1)
    try:
        async with asyncio.timeout(SENDING):
            await threads.call(send, {})
    except TimeoutError:
        _log.warning("telemetry could not be sent within %g s: is the receiver there?", SENDING)
    finally:
        threads.close()
