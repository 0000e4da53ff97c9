"""A durable pull consumer of a JetStream stream, over a connection that goes to a vetted address and no other.

The client library would connect again by itself, also to servers that the first one names; here it never does. Its
owner connects anew, so that the address is vetted each time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.network import Address, Guard

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext
    from nats.js.api import ConsumerConfig

DEFAULT_PORT: Final = 4222
CONNECT_TIMEOUT: Final = 5
LONGEST_CONNECT: Final = 20.0
LONGEST_REQUEST: Final = 5.0
LONGEST_CLOSE: Final = 5.0
MISSING: Final = "the package nats-py is missing: pip install 'ropewalk[nats]'"


class Broken(Exception):
    """The queue cannot be consumed for now; the message says why, and no secret."""


class Wanted(Struct, frozen=True):
    """Which messages are consumed, and how; `ack_wait` in seconds. A consumer of its own is made as it is wanted."""

    stream: str
    consumer: str
    is_own: bool
    subject: str | None
    pending: int
    ack_wait: float


class Subscription:
    """What is pulled from one consumer, and what is said of each message."""

    def __init__(self, client: "Client", pull: "JetStreamContext.PullSubscription") -> None:
        self._client = client
        self._pull = pull
        self._pulling: asyncio.Task[list[Msg]] | None = None

    async def fetch(self, most: int, seconds: float) -> "list[Msg]":
        """The next messages, as soon as there are some; none if none came in that time."""
        # A task of its own: the library may overlook that the task which waits for it is cancelled.
        self._pulling = asyncio.get_running_loop().create_task(self._pull.fetch(most, timeout=seconds))
        await asyncio.wait([self._pulling])
        with _translated():
            try:
                return self._pulling.result()
            except TimeoutError:
                if self._client.is_closed:
                    raise Broken("the connection is lost") from None
                return []

    async def end(self) -> None:
        """What is still being pulled ends with the connection, which is closed."""
        if self._pulling is not None:
            self._pulling.cancel()
            await asyncio.gather(self._pulling, return_exceptions=True)

    async def acknowledge(self, message: "Msg") -> None:
        """It is done with."""
        with _translated():
            await message.ack()

    async def postpone(self, message: "Msg", seconds: float) -> None:
        """It is to be delivered again after that time."""
        with _translated():
            await message.nak(delay=seconds)

    async def give_up(self, message: "Msg") -> None:
        """It is not to be delivered again, though nothing was done with it."""
        with _translated():
            await message.term()


@asynccontextmanager
async def subscribed(guard: Guard, credential: Credential, wanted: Wanted) -> AsyncIterator[Subscription]:
    """The consumer, made if it is not there; Broken or NodeFailure says why there is none."""
    try:
        from nats.aio.client import Client  # here, since most servers consume no queue
    except ImportError:
        raise Broken(MISSING) from None
    url = urlsplit(str(credential.values["url"]))
    host, port = url.hostname or "", url.port or DEFAULT_PORT
    credential.require_host(host)
    places = [f"{url.scheme}://{_written(each)}:{port}" for each in await guard.addresses(host, port)]
    client, subscription = Client(), None
    try:
        await _connect(client, places, host, credential, is_tls=url.scheme == "tls")
        with _translated():
            pull = await _bound(client, wanted)
        subscription = Subscription(client, pull)
        yield subscription
    finally:
        await _close(client)
        if subscription is not None:
            await subscription.end()


async def _connect(client: "Client", places: list[str], host: str, credential: Credential, *, is_tls: bool) -> None:
    causes: list[Exception] = []

    async def note(error: Exception) -> None:
        causes.append(error)

    proofs = _proofs(client, credential, is_tls=is_tls)
    with _translated(causes):
        async with asyncio.timeout(LONGEST_CONNECT):
            await client.connect(
                places, error_cb=note, name="ropewalk",
                allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0, dont_randomize=True,
                connect_timeout=CONNECT_TIMEOUT, tls_hostname=host,
                user=proofs.get("user"), password=proofs.get("password"), token=proofs.get("token"),
            )  # fmt: skip
        _require_protected(client, is_tls=is_tls)


def _proofs(client: "Client", credential: Credential, *, is_tls: bool) -> dict[str, Callable[[], str]]:
    """What proves who connects; it is asked for when the connection is protected, if it is to be."""

    def proof(value: str) -> Callable[[], str]:
        def tell() -> str:
            _require_protected(client, is_tls=is_tls)
            return value

        return tell

    fields = {"user": "username", "password": "password", "token": "token"}
    return {name: proof(str(value)) for name, field in fields.items() if (value := credential.values.get(field))}


def _require_protected(client: "Client", *, is_tls: bool) -> None:
    # The client protects a connection where the server's first line asks for it, and does not insist on that;
    # nothing but this line tells it before a secret is sent.
    if is_tls and not client._server_info.get("tls_required"):
        raise Broken("the server offers no TLS, and the address says tls://")


def _written(address: Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)


async def _close(client: "Client") -> None:
    with _quiet():
        async with asyncio.timeout(LONGEST_CLOSE):
            await client.close()


async def _bound(client: "Client", wanted: Wanted) -> "JetStreamContext.PullSubscription":
    from nats.js.api import AckPolicy, ConsumerConfig  # here, as above
    from nats.js.errors import NotFoundError

    stream = client.jetstream(timeout=LONGEST_REQUEST)
    own: dict[str, Any] = {
        "filter_subject": wanted.subject, "max_ack_pending": wanted.pending, "ack_wait": wanted.ack_wait,
    }  # fmt: skip
    fresh = ConsumerConfig(durable_name=wanted.consumer, ack_policy=AckPolicy.EXPLICIT, **own)
    try:
        found = (await stream.consumer_info(wanted.stream, wanted.consumer)).config
    except NotFoundError:
        try:
            await stream.add_consumer(wanted.stream, fresh)
        except NotFoundError:
            raise Broken(f"there is no stream {wanted.stream!r}") from None
    else:
        _require_fit(found, wanted)
        if wanted.is_own and any(getattr(found, name) != value for name, value in own.items()):
            await stream.add_consumer(wanted.stream, fresh)
    return await stream.pull_subscribe_bind(wanted.consumer, wanted.stream)


def _require_fit(found: "ConsumerConfig", wanted: Wanted) -> None:
    """A consumer that was made elsewhere is used as it is, if messages can be pulled from it and acknowledged."""
    from nats.js.api import AckPolicy  # here, as above

    if found.deliver_subject is not None or found.ack_policy != AckPolicy.EXPLICIT:
        raise Broken(
            f"the consumer {wanted.consumer!r} is none that messages are pulled from and acknowledged one by one"
        )
    if not wanted.is_own and wanted.subject is not None and found.filter_subject != wanted.subject:
        raise Broken(f"the consumer {wanted.consumer!r} is there, and takes other subjects than {wanted.subject!r}")


@contextmanager
def _translated(causes: list[Exception] | None = None) -> Iterator[None]:
    """What the client library raises, as Broken; the last of the `causes` that it noted says more than its end."""
    from nats.errors import Error  # here, as above

    try:
        yield
    except (Error, OSError) as error:
        told = causes[-1] if causes else error
        raise Broken(str(told) or type(told).__name__) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """A connection that cannot be closed properly is as good as closed."""
    from nats.errors import Error  # here, as above

    try:
        yield
    except (Error, OSError):
        return
