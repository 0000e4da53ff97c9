"""Events that are published: the executions that wait for them are told, and the triggers that listen are fired.

Which triggers listen is looked up by the words of the subject in a tree of patterns, so a thousand triggers for other
subjects cost a publisher nothing. The tree is kept until a trigger changes here, or another server hints at a change.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import uuid_utils
from msgspec import Struct, field

from ropewalk.core.canonical import JSON, json_problems
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.core.expression import ExpressionError, Scope, compile_template, is_true
from ropewalk.core.instant import rfc3339
from ropewalk.core.subject import LONGEST_NAME, is_subject
from ropewalk.service.triggers.firing import LONGEST_KEY, Firing, settings_of
from ropewalk.store.access import Store
from ropewalk.store.triggers import Trigger

if TYPE_CHECKING:
    from ropewalk.service.verbs import Service

MAX_AGE: Final = SECOND
"""How long (µs) a server that missed a hint may know of a change no earlier."""


class Published(Struct, frozen=True):
    """How many executions were told of an event, and which ones triggers started."""

    id: str
    told: int
    started: list[str]


class _Node(Struct):
    """One word of patterns: what follows it, and the triggers whose patterns end here."""

    words: dict[str, "_Node"] = field(default_factory=dict)
    triggers: list[Trigger] = field(default_factory=list)


class _Tree(Struct, frozen=True):
    root: _Node
    changes: int
    read_at: int


class EventTriggers:
    """The triggers of each workspace that listen to events; `changes` goes up when another server hints at one."""

    def __init__(self, store: Store, changes: Callable[[], int]) -> None:
        self._store = store
        self._changes = changes
        self._trees: dict[str, _Tree] = {}

    def forget(self) -> None:
        """A trigger was changed here."""
        self._trees.clear()

    async def listening(self, workspace: str, subject: str) -> list[Trigger]:
        """Those whose patterns fit the subject, the oldest first."""
        tree = self._trees.get(workspace)
        if tree is None or self._is_stale(tree):
            tree = await self._read(workspace)
        return sorted(_fitting(tree.root, subject.split(".")), key=lambda each: each.id)

    def _is_stale(self, tree: _Tree) -> bool:
        is_old = self._store.is_shared and self._store.now() - tree.read_at > MAX_AGE
        return is_old or tree.changes != self._changes()

    async def _read(self, workspace: str) -> _Tree:
        tree = _Tree(_Node(), self._changes(), self._store.now())
        for row in await self._store.fetch("event_triggers", workspace):
            _add(tree.root, Trigger(*row))
        self._trees[workspace] = tree
        return tree


def _add(root: _Node, trigger: Trigger) -> None:
    node = root
    for word in str(settings_of(trigger)["event"]).split("."):
        node = node.words.setdefault(word, _Node())
    node.triggers.append(trigger)


def _fitting(node: _Node, words: list[str]) -> Iterator[Trigger]:
    """`*` stands for one word, `>` at the end for one or more."""
    if not words:
        yield from node.triggers
        return
    if (rest := node.words.get(">")) is not None:
        yield from rest.triggers
    for word in (words[0], "*"):
        if (following := node.words.get(word)) is not None:
            yield from _fitting(following, words[1:])


async def publish(service: "Service", subject: str, payload: JSON, by: str, event_id: str | None = None, *,
                  attributes: dict[str, JSON] | None = None, depth: int = 0) -> Published:  # fmt: skip
    """Tell the executions that wait for such an event and start what triggers ask for, once for each id.

    Durable on return. `attributes` are what else its sender says of it, `depth` how many executions led to it.
    """
    _require_event(subject, payload, event_id)
    key = str(uuid_utils.uuid7()) if event_id is None else event_id
    work = None if event_id is None else f"event:{by}:{event_id}"
    told = await service.engine.publishing.publish(service.workspace, subject, payload, by, work)
    event = {
        "id": key, "subject": subject, "payload": payload, "by": by, "receivedAt": rfc3339(service.store.now()),
        **({} if attributes is None else {"attributes": attributes}),
    }  # fmt: skip
    started = []
    for trigger in await service.event_triggers.listening(service.workspace, subject):
        if _passes(trigger, event):
            fired = await Firing(service).fire(trigger, key, event, depth=depth)
            started += [] if fired.execution is None else [fired.execution]
    return Published(key, told, started)


def _require_event(subject: Any, payload: JSON, event_id: str | None) -> None:
    problems = json_problems(payload, ("payload",))
    if not isinstance(subject, str) or not is_subject(subject):
        words = f"must be words with dots between them, like order.paid, of at most {LONGEST_NAME} characters"
        problems.append(Problem(("subject",), words))
    if event_id is not None and not (0 < len(event_id) <= LONGEST_KEY and event_id.isprintable()):
        problems.append(Problem(("id",), f"must be 1 to {LONGEST_KEY} printable characters"))
    if problems:
        raise InvalidInput(problems)


def _passes(trigger: Trigger, event: dict[str, Any]) -> bool:
    """Whether the trigger listens to this one; an event that its filter cannot be asked about is none of its."""
    written = settings_of(trigger).get("filter")
    if written is None:
        return True
    scope = Scope()
    scope.event = event
    try:
        return is_true(compile_template(written).resolve(scope))
    except ExpressionError:
        return False
