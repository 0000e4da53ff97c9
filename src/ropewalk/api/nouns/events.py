"""Events over HTTP: something happened outside; executions that wait for it are told, triggers are fired."""

import asyncio
from typing import Any, Final

from fastapi import Request
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call
from ropewalk.api.doors.request_bodies import read_json
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, exemplified
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.core.subject import LONGEST_NAME
from ropewalk.service.triggers import events
from ropewalk.service.triggers.events import Published as Outcome

routes = Routes("/events", "Events")

MOST_EVENTS: Final = 1_000
AT_ONCE: Final = 50
_SUBJECT: Final = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"
_ID: Final = "019a8b0c-3f1e-7c4e-9d53-2b1f0c9a7e11"


class EventBody(Body):
    """What happened. The same `id` a second time tells and starts nothing."""

    model_config = exemplified(Body, {"subject": "order.paid", "payload": {"orderId": "A-7"}, "id": "7"})

    subject: str = Field(max_length=LONGEST_NAME, pattern=_SUBJECT, description="Words with dots between them.")
    payload: Any = None
    id: str | None = Field(None, min_length=1, max_length=256, description="By what it is known again.")


class EventsBody(Body):
    """Several events, in their order."""

    model_config = exemplified(Body, {"events": [{"subject": "order.paid", "payload": {"orderId": "A-7"}}]})

    events: list[EventBody] = Field(max_length=MOST_EVENTS)


class Published(Answer):
    """How many executions were told, and which ones triggers started."""

    model_config = exemplified(Answer, {"id": "7", "subject": "order.paid", "told": 2, "started": [_ID]})

    id: str
    subject: str
    told: int
    started: list[str]


class PublishedAll(Answer):
    """The same for several."""

    model_config = exemplified(
        Answer, {"published": [{"id": "7", "subject": "order.paid", "told": 2, "started": [_ID]}]}
    )

    published: list[Published]


@routes.post("", Right.EXECUTE, status_code=202, response_model=Published)
async def publish_event(call: Caller, body: EventBody) -> dict[str, Any]:
    """Tell every execution of the workspace that waits for such an event, and fire the triggers that listen."""
    call.require()
    return _told(body.subject, await _publish(call, body))


@routes.post("/batch", Right.EXECUTE, status_code=202, response_model=PublishedAll)
async def publish_events(call: Caller, body: EventsBody) -> dict[str, Any]:
    """Publish up to a thousand events. What was published before one that fails stays published."""
    call.require()
    found = []
    for place, each in enumerate(body.events):
        if place % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
        found.append(_told(each.subject, await _publish(call, each)))
    return {"published": found}


@routes.post("/cloudevents", Right.EXECUTE, status_code=202, response_model=PublishedAll)
async def receive_cloud_events(call: Caller, request: Request) -> dict[str, Any]:
    """Publish CloudEvents 1.0: one or a batch as JSON, or one in binary mode, its attributes in `ce-` headers.

    Its `type` is the subject, its `data` the payload; it is known again by `source` and `id`.
    """
    call.require()
    value = await read_json(await request.body())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if "ce-specversion" in request.headers:
        told = {name[3:]: given for name, given in request.headers.items() if name.startswith("ce-")}
        found: Any = [{**told, "data": value}]
    else:
        found = value if kind == "application/cloudevents-batch+json" else [value]
    return {"published": [_told(*each) for each in await _receive(call, found)]}


async def _receive(call: Call, found: Any) -> list[tuple[str, Outcome]]:
    if not isinstance(found, list) or len(found) > MOST_EVENTS:
        raise InvalidInput([Problem(("body",), f"must be a list of at most {MOST_EVENTS:,} events")])
    problems = [problem for place, each in enumerate(found) for problem in _problems(place, each)]
    if problems:
        raise InvalidInput(problems)
    return [(each["type"], await _cloud_event(call, each)) for each in found]


def _problems(place: int, event: Any) -> list[Problem]:
    """What is wrong with a CloudEvent before anything of it is looked at."""
    if not isinstance(event, dict):
        return [Problem((place,), "must be an object")]
    missing = [name for name in ("specversion", "id", "source", "type") if not isinstance(event.get(name), str)]
    if missing:
        return [Problem((place, name), "must be a text") for name in missing]
    return [] if event["specversion"] == "1.0" else [Problem((place, "specversion"), "must be 1.0")]


async def _cloud_event(call: Call, event: dict[str, Any]) -> Outcome:
    attributes = {name: value for name, value in event.items() if name != "data"}
    about = (event["type"], event.get("data"), call.actor.subject, f"{event['source']} {event['id']}"[:512])
    return await events.publish(call.service, *about, attributes=attributes)


async def _publish(call: Call, body: EventBody) -> Outcome:
    return await events.publish(call.service, body.subject, body.payload, call.actor.subject, body.id)


def _told(subject: str, outcome: Outcome) -> dict[str, Any]:
    return {"id": outcome.id, "subject": subject, "told": outcome.told, "started": outcome.started}
