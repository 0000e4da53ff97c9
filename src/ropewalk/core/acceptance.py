"""What an execution begins with: a request becomes the first events of its log."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.canonical import writable
from ropewalk.core.errors import InvalidInput, Problem, Unfinished
from ropewalk.core.events import RULES, Event, ExecutionAccepted, Parent
from ropewalk.core.expression import ExpressionError, Scope
from ropewalk.core.expression.run import BRIEF_STEPS
from ropewalk.core.plan import Plan
from ropewalk.core.state import TriggerType

LONGEST_KEY: Final = 1_000
"""How many bytes a concurrency key may have: it is in an index, where PostgreSQL has no room for much more, and one
that does not fit would fail every claim it is part of."""


class Version(Struct, frozen=True):
    """One version of a workflow, ready to be executed; `bounded_by` saved it and reaches less than the workspace."""

    workflow: str
    version: int
    hash: str
    plan: Plan
    bounded_by: str | None = None


class StartRequest(Struct, frozen=True, kw_only=True):
    """What is to be executed, for whom, and with what; `bounded_by` reach less than the workspace."""

    version: Version
    workspace: str = "default"
    input: Any = None
    vars: Mapping[str, Any] = {}
    env: Mapping[str, str] = {}
    trigger: TriggerType = TriggerType.MANUAL
    payload: Any = None
    priority: int = 5
    actor: str = "local"
    parent: Parent | None = None
    execution: str | None = None
    carried: tuple[Event, ...] = ()
    trace: str | None = None
    once: str | None = None
    bounded_by: tuple[str, ...] = ()
    depth: int = 0

    def bounds(self) -> tuple[str, ...]:
        """The actors that bound what it reaches: those who start it, and who saved the version."""
        saver = self.version.bounded_by
        return self.bounded_by if saver is None or saver in self.bounded_by else (*self.bounded_by, saver)

    def concurrency_key(self) -> str | None:
        """Evaluated at acceptance, on the input only."""
        template = self.version.plan.concurrency_key
        if template is None:
            return None
        try:
            key = template.resolve_briefly(Scope(input=self.input))
        except ExpressionError as error:
            raise InvalidInput([Problem(("concurrencyKey",), str(error))]) from error
        except Unfinished as error:
            message = f"takes more than {BRIEF_STEPS:,} steps; make the key of a part of the input"
            raise InvalidInput([Problem(("concurrencyKey",), message)]) from error
        text = writable(key) if isinstance(key, str) else msgspec.json.encode(key).decode()
        if (size := len(text.encode())) > LONGEST_KEY:
            allowed = f"has {size:,} bytes, at most {LONGEST_KEY:,} are allowed"
            raise InvalidInput([Problem(("concurrencyKey",), allowed)])
        return text


def first_events(request: StartRequest, execution: str, now: int) -> tuple[ExecutionAccepted, list[Event]]:
    """How the execution of this id is accepted, and every event its log begins with; InvalidInput if it cannot be."""
    version, bounded_by = request.version, request.bounds()
    accepted = ExecutionAccepted(
        now,
        execution,
        request.workspace,
        version.workflow,
        version.version,
        version.hash,
        request.trigger,
        request.payload,
        request.input,
        {**version.plan.definition.vars, **request.vars},
        {} if bounded_by else dict(request.env),
        request.parent,
        request.priority,
        request.concurrency_key(),
        request.trace,
        request.once,
        RULES,
        bounded_by,
        request.depth,
    )
    # Taken over now, whenever that was looked up: time does not go back within a log.
    return accepted, [accepted, *[replace(event, at=now) for event in request.carried]]
