"""Each message of a stream starts one execution, or leaves one reason; whatever is lost in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from nats.js import JetStreamContext

from ropewalk.core.errors import InvalidDefinition, InvalidInput
from ropewalk.service import Service, reading
from ropewalk.service.triggers import reading as trigger_reading
from ropewalk.service.triggers.backlog import Backlog
from ropewalk.service.triggers.firing import Firing
from ropewalk.store import executions, triggers
from ropewalk.store.triggers import Fire, Trigger
from ropewalk.triggers import queue
from ropewalk.triggers.jetstream import Broken, Subscription
from ropewalk.triggers.messages import payload_of
from ropewalk.triggers.queue import Consumer, Queues
from ropewalk.wiring import Settings, open_backend, open_service
from tests.nats import NatsServer, publish_anew
from tests.polling import until
from tests.triggers.queue_campaign import campaign

QUEUE: dict[str, Any] = {"queue": "ORDERS", "credential": "nats", "name": "orders", "ackWait": "1s"}


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    yield server
    server.kill()


@pytest.fixture
async def stream(nats: NatsServer) -> AsyncIterator[JetStreamContext]:
    """A stream of orders that takes the same id twice, as one does after its duplicate window."""
    async with nats.stream() as stream:
        await stream.add_stream(name="ORDERS", subjects=["orders.>"], duplicate_window=0.1)
        yield stream
        for each in await stream.streams_info():
            await stream.delete_stream(str(each.config.name))


@pytest.fixture(params=["file", "server"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "ropewalk.db") if request.param == "file" else request.getfixturevalue("database")


@pytest.fixture
def settings(db: str, tmp_path: Path) -> Settings:
    return Settings(db=db, allow_hosts=("127.0.0.1",), key_file=str(tmp_path / "key"))


@pytest.fixture
async def service(settings: Settings, nats: NatsServer) -> AsyncIterator[Service]:
    async with open_service(settings) as service:
        await service.credentials.create("nats", "nats", {"url": nats.url}, [], "me")
        yield service


@pytest.fixture
async def consuming(service: Service) -> AsyncIterator[Queues]:
    queues = Queues(service)
    task = asyncio.get_running_loop().create_task(queues.run())
    yield queues
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK", "SHORTEST_PAUSE", "FULL", "POSTPONED"):
        monkeypatch.setattr(queue, name, 0.05)


async def saved(service: Service, **more: Any) -> Trigger:
    return await declared(service, {**QUEUE, **more})


async def declared(service: Service, settings: dict[str, Any], **more: Any) -> Trigger:
    document = {"ropewalk": 1, "name": "w", "nodes": [{"id": "a", "type": "noop"}], "triggers": [settings], **more}
    await service.save(document)
    return (await triggers.listed(service.store, "default"))[0]


async def started(service: Service) -> list[Any]:
    found = await reading.list_executions(service.store, "default", executions.ANY, limit=10_000)
    return [(await reading.recorded(service.store, each["id"])).accepted for each in found]


async def inputs(service: Service) -> list[Any]:
    return sorted(each.input for each in await started(service))


async def fires(service: Service, trigger: Trigger) -> list[Fire]:
    return await triggers.fires(service.store, trigger.id, limit=1_000)


async def eventually(question: Callable[[], Awaitable[bool]]) -> None:
    await until(question, "the consumer got there")


async def is_drained(stream: JetStreamContext, trigger: Trigger) -> bool:
    """Whether every message was delivered, and is done with."""
    try:
        info = await stream.consumer_info("ORDERS", f"ropewalk-{trigger.id}")
    except Exception:  # the consumer is not made yet
        return False
    return info.num_pending == 0 and info.num_ack_pending == 0


@pytest.mark.usefixtures("haste", "consuming")
async def test_each_message_starts_one_execution_that_says_what_came(service: Service, stream: JetStreamContext):
    for n in range(150):
        await stream.publish(f"orders.{n % 2}", str(n).encode(), headers={"Shop": "a"})
    trigger = await saved(service)

    await eventually(lambda: is_drained(stream, trigger))

    assert await inputs(service) == list(range(150))
    (first,) = [each for each in await started(service) if each.input == 0]
    assert first.trigger == "QUEUE"
    received = first.payload.pop("receivedAt")
    assert received.endswith("Z")
    assert first.payload == {
        "subject": "orders.0", "payload": 0, "headers": {"Shop": "a"},
        "stream": "ORDERS", "sequence": 1, "deliveries": 1,
    }  # fmt: skip


@pytest.mark.usefixtures("haste")
async def test_a_message_whose_acknowledgement_is_lost_starts_nothing_again(
    service: Service, stream: JetStreamContext, monkeypatch: pytest.MonkeyPatch
):
    trigger = await saved(service)
    for n in range(5):
        await stream.publish("orders.new", str(n).encode())
    acknowledging = asyncio.Event()

    async def hang(self: Subscription, message: Any) -> None:
        acknowledging.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(Subscription, "acknowledge", hang)
        task = asyncio.get_running_loop().create_task(Consumer(service, trigger).run())
        await asyncio.wait_for(acknowledging.wait(), 30)

        async def all_started() -> bool:
            return len(await started(service)) == 5

        await eventually(all_started)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert not await is_drained(stream, trigger)

    task = asyncio.get_running_loop().create_task(Consumer(service, trigger).run())
    await eventually(lambda: is_drained(stream, trigger))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert await inputs(service) == list(range(5))
    info = await stream.consumer_info("ORDERS", f"ropewalk-{trigger.id}")
    assert info.delivered is not None
    assert info.delivered.consumer_seq == 10


@pytest.mark.usefixtures("haste")
async def test_two_servers_share_a_stream(service: Service, stream: JetStreamContext):
    trigger = await saved(service, maxPending=20)
    for n in range(200):
        await stream.publish("orders.new", str(n).encode())
    tasks = [asyncio.get_running_loop().create_task(Consumer(service, trigger).run()) for _ in range(2)]

    await eventually(lambda: is_drained(stream, trigger))
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert await inputs(service) == list(range(200))


@pytest.mark.usefixtures("haste", "consuming")
async def test_a_message_with_a_known_id_or_key_starts_nothing(service: Service, stream: JetStreamContext):
    for n, name in enumerate(["a", "b", "a", "a"]):
        await publish_anew(stream, "orders.new", str(n).encode(), name)
    trigger = await saved(service)
    await eventually(lambda: is_drained(stream, trigger))

    assert len(await inputs(service)) == 2
    assert sorted(fire.key for fire in await fires(service, trigger)) == ["a", "b"]


@pytest.mark.usefixtures("haste", "consuming")
async def test_an_expression_names_the_message(service: Service, stream: JetStreamContext):
    for text in ('{"id": 7}', '{"id": 7, "again": true}', '{"id": 8}', "{}"):
        await stream.publish("orders.new", text.encode())
    trigger = await saved(service, dedupeKey="{{ event.payload.id ?? '' }}", input="{{ event.sequence }}")
    await eventually(lambda: is_drained(stream, trigger))

    found = await fires(service, trigger)
    assert {fire.key for fire in found} >= {"7", "8"}
    assert len(found) == 3


@pytest.mark.usefixtures("haste", "consuming")
async def test_what_can_start_nothing_is_recorded_and_not_delivered_again(service: Service, stream: JetStreamContext):
    await stream.publish("orders.new", b'"text"')
    await stream.publish("orders.new", b"5")
    trigger = await declared(service, QUEUE, input={"type": "string"})
    await eventually(lambda: is_drained(stream, trigger))

    assert await inputs(service) == ["text"]
    (skipped,) = [fire for fire in await fires(service, trigger) if fire.execution is None]
    assert skipped.reason == "INVALID"
    assert skipped.key.startswith("ORDERS:2@")


@pytest.mark.usefixtures("haste", "consuming")
async def test_a_message_that_fails_again_and_again_is_given_up_as_poison(
    service: Service, stream: JetStreamContext, monkeypatch: pytest.MonkeyPatch
):
    fire, tried = Firing.fire, 0

    async def burst(self: Firing, trigger: Trigger, key: str, event: Any, **more: Any) -> Any:
        nonlocal tried
        if event["payload"] == "bad":
            tried += 1
            raise ArithmeticError("no\0good")
        return await fire(self, trigger, key, event, **more)

    monkeypatch.setattr(Firing, "fire", burst)
    trigger = await saved(service, maxDeliveries=2)
    await stream.publish("orders.new", b"bad")
    await stream.publish("orders.new", b"good")
    await eventually(lambda: is_drained(stream, trigger))

    assert (tried, await inputs(service)) == (2, ["good"])
    (skipped,) = [fire for fire in await fires(service, trigger) if fire.execution is None]
    assert skipped.reason == "POISON"
    assert skipped.detail is not None
    assert skipped.detail.startswith("ArithmeticError: no")


@pytest.mark.usefixtures("haste", "consuming")
async def test_a_stream_that_is_not_there_is_waited_for_and_the_explanation_says_so(
    service: Service, stream: JetStreamContext
):
    trigger = await saved(service, queue="LATER")

    async def is_told() -> bool:
        return "no stream 'LATER'" in service.queue_troubles.get(trigger.id, "")

    await eventually(is_told)
    told = await trigger_reading.explain(service.store, trigger, 0, service.queue_troubles.get(trigger.id))
    await stream.add_stream(name="LATER", subjects=["later"])
    await stream.publish("later", b"1")

    async def is_started() -> bool:
        return await inputs(service) == [1]

    await eventually(is_started)
    assert told["reasons"][0] == "it takes no messages for now: there is no stream 'LATER'"
    assert service.queue_troubles == {}


@pytest.mark.usefixtures("haste", "consuming")
async def test_a_connection_that_is_lost_is_made_again(service: Service, tmp_path: Path):
    own = NatsServer(tmp_path)
    try:
        await service.credentials.create("own", "nats", {"url": own.url}, [], "me")
        async with own.stream() as stream:
            await stream.add_stream(name="ORDERS", subjects=["orders.>"])
            await stream.publish("orders.new", b"1")
        trigger = await saved(service, credential="own")

        async def has(count: int) -> bool:
            return len(await started(service)) == count

        await eventually(lambda: has(1))
        own.kill()

        async def is_told() -> bool:
            return trigger.id in service.queue_troubles

        await eventually(is_told)
        own.start()
        async with own.stream() as stream:
            await stream.publish("orders.new", b"2")
        await eventually(lambda: has(2))
        assert await inputs(service) == [1, 2]
    finally:
        own.kill()


@pytest.mark.usefixtures("haste")
async def test_what_is_switched_off_takes_nothing_and_goes_on_when_it_is_switched_on(
    service: Service, stream: JetStreamContext, consuming: Queues
):
    trigger = await saved(service)
    await stream.publish("orders.new", b"1")
    await eventually(lambda: is_drained(stream, trigger))
    await service.triggers.switch(trigger.id, on=False, by="me")
    await stream.publish("orders.new", b"2")
    await consuming.look()
    off = await inputs(service)
    await service.triggers.switch(trigger.id, on=True, by="me")
    await eventually(lambda: is_drained(stream, trigger))

    assert (off, await inputs(service)) == ([1], [1, 2])


@pytest.mark.usefixtures("haste", "consuming")
async def test_other_settings_are_followed_at_once(service: Service, stream: JetStreamContext):
    trigger = await saved(service, subject="orders.a")
    await stream.publish("orders.b", b"1")
    await stream.publish("orders.a", b"2")
    await eventually(lambda: is_drained(stream, trigger))
    await saved(service, subject="orders.>", maxPending=7)

    async def is_followed() -> bool:
        config = (await stream.consumer_info("ORDERS", f"ropewalk-{trigger.id}")).config
        return (config.filter_subject, config.max_ack_pending) == ("orders.>", 7)

    await eventually(is_followed)
    await stream.publish("orders.b", b"3")
    await eventually(lambda: is_drained(stream, trigger))

    assert await inputs(service) == [2, 3]


@pytest.mark.usefixtures("haste", "consuming")
async def test_nothing_is_pulled_while_too_much_waits(
    service: Service, stream: JetStreamContext, monkeypatch: pytest.MonkeyPatch
):
    is_full = True

    async def answer(self: Backlog, workspace: str) -> bool:
        return is_full

    monkeypatch.setattr(Backlog, "is_full", answer)
    trigger = await saved(service)
    await stream.publish("orders.new", b"1")

    async def is_told() -> bool:
        return "executions wait" in service.queue_troubles.get(trigger.id, "")

    await eventually(is_told)
    info = await stream.consumer_info("ORDERS", f"ropewalk-{trigger.id}")
    is_full = False
    await eventually(lambda: is_drained(stream, trigger))

    assert info.delivered is not None
    assert info.delivered.consumer_seq == 0
    assert await inputs(service) == [1]


@pytest.mark.usefixtures("haste", "consuming")
async def test_a_message_that_finds_no_place_is_kept_by_the_stream(
    service: Service, stream: JetStreamContext, monkeypatch: pytest.MonkeyPatch
):
    asked = cycle([False, True])  # there seems to be a place when it pulls, and there is none when it starts

    async def answer(self: Backlog, workspace: str) -> bool:
        return next(asked)

    monkeypatch.setattr(Backlog, "is_full", answer)
    trigger = await saved(service)
    await stream.publish("orders.new", b"1")

    async def came_twice() -> bool:
        try:
            info = await stream.consumer_info("ORDERS", f"ropewalk-{trigger.id}")
        except Exception:  # the consumer is not made yet
            return False
        return info.delivered is not None and info.delivered.consumer_seq >= 2

    await eventually(came_twice)
    kept = await fires(service, trigger)
    asked = cycle([False])
    await eventually(lambda: is_drained(stream, trigger))

    assert (kept, await inputs(service)) == ([], [1])


async def test_a_host_that_may_not_be_reached_is_not_connected_to(db: str, nats: NatsServer, tmp_path: Path):
    async with open_service(Settings(db=db, key_file=str(tmp_path / "key"))) as service:
        await service.credentials.create("nats", "nats", {"url": nats.url}, [], "me")
        trigger = await saved(service)
        task = asyncio.get_running_loop().create_task(Consumer(service, trigger).run())

        async def is_told() -> bool:
            return "ROPEWALK_ALLOW_HOSTS" in service.queue_troubles.get(trigger.id, "")

        await eventually(is_told)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_secret_is_not_sent_where_the_address_asks_for_tls_and_the_server_offers_none(
    service: Service, nats: NatsServer
):
    values = {"url": nats.url.replace("nats:", "tls:"), "username": "me", "password": "s3cret"}
    await service.credentials.create("tls", "nats", values, [], "me")
    trigger = await saved(service, credential="tls")

    with pytest.raises(Broken, match="offers no TLS"):
        await Consumer(service, trigger)._consume()


async def test_a_server_that_wants_a_password_gets_it_and_a_wrong_one_is_told(service: Service, tmp_path: Path):
    own = NatsServer(tmp_path, "--user", "shop", "--pass", "s3cret")
    try:
        for name, password in {"right": "s3cret", "wrong": "other"}.items():
            values = {"url": own.url, "username": "shop", "password": password}
            await service.credentials.create(name, "nats", values, [], "me")
        wrong = await saved(service, credential="wrong")
        with pytest.raises(Broken, match=r"(?i)authorization") as refused:
            await Consumer(service, wrong)._consume()
        right = await saved(service, credential="right")
        with pytest.raises(Broken, match="no stream"):
            await Consumer(service, right)._consume()
        assert "other" not in str(refused.value)
    finally:
        own.kill()


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"credential": None}, "credential"),
        ({"credential": "absent"}, "there is no credential 'absent'"),
        ({"credential": "basic"}, "nats"),
        ({"subject": "a..b"}, "is no pattern"),
        ({"queue": "a.b"}, "a name of letters"),
        ({"consumer": "a/b"}, "a name of letters"),
        ({"maxPending": 0}, "maxPending"),
    ],
)
async def test_what_is_wrong_with_a_queue_is_told_when_it_is_saved(service: Service, wrong, where):
    await service.credentials.create("basic", "http.basic", {"username": "a", "password": "b"}, ["x.org"], "me")
    settings = {name: value for name, value in {**QUEUE, **wrong}.items() if value is not None}

    with pytest.raises(InvalidDefinition) as refused:
        await declared(service, settings)

    assert where in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://a", "nats://", "nats://me:secret@a", "nats://a:99999", "nats://a:b", "nats://a/b"]
)
async def test_an_address_that_is_none_is_refused_with_the_credential(service: Service, url: str):
    with pytest.raises(InvalidInput):
        await service.credentials.create("bad", "nats", {"url": url}, [], "me")


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (b"", {"payload": None}),
        (b'{"a": 1}', {"payload": {"a": 1}}),
        (b"hello", {"payload": "hello"}),
        (b"9007199254740993", {"payload": "9007199254740993"}),
        (b"[" * 5_000, {"payload": "[" * 5_000}),
        (b'"\\u0000"', {"payload": '"\\u0000"'}),
        (b"\xff\x00", {"payload": None, "payloadBase64": "/wA="}),
        (b"a\x00", {"payload": None, "payloadBase64": "YQA="}),
    ],
)
def test_a_payload_is_json_or_text_or_bytes(data: bytes, event: dict[str, Any]):
    assert payload_of(data) == event


@pytest.mark.usefixtures("haste")
@pytest.mark.parametrize("db", ["server"], indirect=True)  # one process owns a file: the campaign has a server on one
async def test_a_server_consumes_while_it_is_up(service: Service, settings: Settings, stream: JetStreamContext):
    trigger = await saved(service)
    await stream.publish("orders.new", b"1")
    async with open_backend(settings):
        await eventually(lambda: is_drained(stream, trigger))

    assert await inputs(service) == [1]


async def test_every_message_starts_one_execution_though_a_server_is_killed(tmp_path: Path):
    counted = await campaign(tmp_path, messages=500, kills=1)

    assert counted.wrong == {}
    assert counted.kills == 1
    assert counted.deliveries > counted.published
