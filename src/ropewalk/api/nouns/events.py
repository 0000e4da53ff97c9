"""Events over HTTP: something happened outside, and the executions that wait for it are told."""

from typing import Any

from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, exemplified
from ropewalk.core.subject import LONGEST_NAME

routes = Routes("/events", "Events")


class EventBody(Body):
    """What happened."""

    model_config = exemplified(Body, {"subject": "order.paid", "payload": {"orderId": "A-7"}})

    subject: str = Field(
        max_length=LONGEST_NAME,
        pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$",
        description="Words with dots between them.",
    )
    payload: Any = None


class Published(Answer):
    """How many executions were told."""

    model_config = exemplified(Answer, {"subject": "order.paid", "told": 2})

    subject: str
    told: int


@routes.post("", Right.EXECUTE, status_code=202, response_model=Published)
async def publish_event(call: Caller, body: EventBody) -> dict[str, Any]:
    """Tell every execution of the workspace that waits for such an event, durably."""
    call.require()
    told = await call.service.publish(body.subject, body.payload, call.actor.subject)
    return {"subject": body.subject, "told": told}
