"""`kv.*` and `dedupe`: values that outlive an execution, for all workflows of a workspace."""

import hashlib
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from ropewalk.core.canonical import LARGEST_INTEGER, canonical
from ropewalk.core.duration import SECOND, parse_duration
from ropewalk.core.reach import Reached, refusal
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import identity
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.keeping import Change, Condition, KeptValues
from ropewalk.nodes.lists import ITEMS, SOME_OR_NONE
from ropewalk.nodes.moments import EPOCH, written
from ropewalk.nodes.paths import FieldPath, getter

JSON: TypeAlias = Any

LARGEST_VALUE = 64 * 1024
LONGEST_KEY = 256
MOST_REMEMBERED = 2_000
VALUE = {"description": "What is kept."}
VERSION = {"type": ["integer", "null"], "description": "Raised by every write; for `ifVersion`."}
KEEPS: MappingProxyType[str, Reached] = MappingProxyType({"key": Reached.KEPT_VALUES})


def _a_length(ttl: JSON) -> JSON:
    if ttl is not None:
        parse_duration(ttl, SECOND)
    return ttl


class Key(Inputs):
    """Which value."""

    key: str = Field(
        min_length=1, max_length=LONGEST_KEY, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["cursor/orders"],
        description="The name of the value in the workspace.",
    )  # fmt: skip


class KeptFor(Inputs):
    """How long a value is kept."""

    ttl: float | str | None = Field(
        None, description="How long it is kept: like 30s, 5m, 2d, or a number of seconds; for good by default.",
        examples=["1d"],
    )  # fmt: skip

    _checked = field_validator("ttl", mode="before")(_a_length)

    def length(self) -> int | None:
        """The same in µs."""
        return None if self.ttl is None else parse_duration(self.ttl)


def values_of(context: NodeContext, what: str) -> KeptValues:
    """The values of the workspace; a permanent failure for what is bounded by a share, or has no store."""
    if bounded_by := context.bounded_by:
        raise NodeFailure.permanent(refusal(what, bounded_by))
    if context.facilities.kept_values is None:
        raise NodeFailure.permanent("values are not kept where this node runs: run it on a worker of the store")
    return context.facilities.kept_values


class KvNode(NodeType):
    """A type that works on one kept value."""

    reaches = KEEPS
    has_rules = True
    words: ClassVar[tuple[str, ...]] = ("key value", "store", "state", "variable", "memory", "persist")


class KvGet(KvNode):
    name = "kv.get"
    summary = "Reads a value that is kept by key for all workflows of the workspace."
    about = About(
        title="Read a kept value",
        category="data",
        icon="database",
        keywords=(*KvNode.words, "read", "lookup"),
        output={"type": "object", "properties": {"value": VALUE, "version": VERSION}},
        ports={"found": "There is a value.", "missing": "There is none, or its time is over."},
    )
    ports = ("found", "missing")
    takes_one_port = True

    class Parameters(Key):
        default: JSON = Field(None, description="What is handed on if there is none.", examples=[0])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        kept = await values_of(context, f"the kept value {parameters.key!r}").get(context.workspace, parameters.key)
        value = kept.value if kept.is_there else parameters.default
        return Output({"value": value, "version": kept.version}, ("found" if kept.is_there else "missing",))


class KvSet(KvNode):
    name = "kv.set"
    summary = "Keeps a value by key for all workflows of the workspace, if wanted only if it has not changed."
    about = About(
        title="Keep a value",
        category="data",
        icon="database",
        keywords=(*KvNode.words, "write", "save", "lock", "compare and set"),
        output={"type": "object", "properties": {"value": VALUE, "version": VERSION}},
        ports={"written": "The value is kept.", "conflict": "The condition does not hold; nothing was written."},
    )
    ports = ("written", "conflict")
    takes_one_port = True

    class Parameters(Key, KeptFor):
        value: JSON = Field(description="The value, of 64 KiB at most.", examples=[{"page": 3}])
        if_version: int | None = Field(
            None, ge=1, description="Only if the value still has this version.", examples=[1_800_000_000_000_000]
        )
        if_missing: bool = Field(False, description="Only if there is none.", examples=[True])

        @model_validator(mode="after")
        def _bounded(self) -> Self:
            if self.if_missing and self.if_version is not None:
                raise ValueError("give at most one of ifVersion and ifMissing")
            if len(canonical(self.value)) > LARGEST_VALUE:
                raise ValueError(f"value is larger than {LARGEST_VALUE // 1024} KiB")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        values = values_of(context, f"the kept value {parameters.key!r}")
        condition = Condition(parameters.if_version, parameters.if_missing)
        about = (context.workspace, parameters.key, parameters.value, parameters.length(), condition)
        return _told(await values.put(*about, context.idempotency_key), "written", "conflict")


class KvDelete(KvNode):
    name = "kv.delete"
    summary = "Removes a value that is kept by key."
    about = About(
        title="Remove a kept value",
        category="data",
        icon="database",
        keywords=(*KvNode.words, "remove", "forget", "unlock"),
        output={"type": "object", "properties": {"value": VALUE, "version": VERSION}},
        ports={"deleted": "It is removed.", "unchanged": "There was none, or it has another version."},
    )
    ports = ("deleted", "unchanged")
    takes_one_port = True

    class Parameters(Key):
        if_version: int | None = Field(
            None, ge=1, description="Only if the value still has this version.", examples=[1_800_000_000_000_000]
        )

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        values = values_of(context, f"the kept value {parameters.key!r}")
        about = (context.workspace, parameters.key, Condition(parameters.if_version))
        return _told(await values.remove(*about, context.idempotency_key), "deleted", "unchanged")


class KvIncrement(KvNode):
    name = "kv.increment"
    summary = "Adds to a number that is kept by key, exactly, however many do so at once."
    about = About(
        title="Count in a kept value",
        category="data",
        icon="database",
        keywords=(*KvNode.words, "counter", "count", "add", "sequence", "quota"),
        output={
            "type": "object",
            "properties": {
                "value": {"type": "number", "description": "The number after that."},
                "version": VERSION,
                "expiresAt": {"type": ["string", "null"], "description": "Until when it is kept."},
            },
        },
    )

    class Parameters(Key, KeptFor):
        by: float = Field(
            1, ge=-LARGEST_INTEGER, le=LARGEST_INTEGER, description="What is added, to 0 at first.", examples=[5]
        )

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        values = values_of(context, f"the kept value {parameters.key!r}")
        amount = int(parameters.by) if float(parameters.by).is_integer() else parameters.by
        about = (context.workspace, parameters.key, amount, parameters.length())
        kept = (await values.add(*about, context.idempotency_key)).kept
        return Output({"value": kept.value, "version": kept.version, "expiresAt": _moment(kept.expires_at)})


def _told(change: Change, made: str, unmade: str) -> Output:
    kept = change.kept
    return Output({"value": kept.value, "version": kept.version}, (made if change.is_made else unmade,))


def _moment(at: int | None) -> str | None:
    return None if at is None else written(EPOCH + timedelta(microseconds=at))


class Dedupe(NodeType):
    name = "dedupe"
    summary = "Keeps each item once: of a list, or of all lists that executions have brought for a time."
    about = About(
        title="Remove duplicates",
        category="data",
        icon="copy-minus",
        keywords=("unique", "distinct", "duplicates", "seen", "once", "new items", "list"),
        output={"type": "array", "description": "The items that were not seen before, in their order."},
        ports=SOME_OR_NONE,
    )
    ports = ("some", "none")
    takes_one_port = True
    has_rules = True
    reaches = MappingProxyType({"memory": Reached.KEPT_VALUES})

    class Parameters(Inputs):
        items: list[JSON] = ITEMS
        by: list[FieldPath] = Field(
            [], max_length=16, description="The paths of the fields that make items alike; all of an item by default.",
            examples=[["id"]],
        )  # fmt: skip
        keep: Literal["first", "last"] = Field(
            "first", description="Which of several that are alike is kept.", examples=["last"]
        )
        memory: str | None = Field(
            None, min_length=1, max_length=LONGEST_KEY, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["orders"],
            description=(
                "The name of a memory of the workspace: items that an execution has brought there before are left out. "
                f"At most {MOST_REMEMBERED:,} items at a time."
            ),
        )  # fmt: skip
        ttl: float | str = Field(
            "30d", description="How long an item is remembered: like 1h, 30d, or a number of seconds.", examples=["1d"]
        )

        _checked = field_validator("ttl", mode="before")(_a_length)

        @model_validator(mode="after")
        def _bounded(self) -> Self:
            if self.memory is None and "ttl" in self.model_fields_set:
                raise ValueError("ttl goes with memory only")
            if self.memory is not None and len(self.items) > MOST_REMEMBERED:
                raise ValueError(
                    f"items has {len(self.items):,} items, and a memory takes {MOST_REMEMBERED:,} at a time"
                )
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        left = _distinct(parameters)
        if parameters.memory is not None:
            values = values_of(context, f"the memory {parameters.memory!r}")
            keys = [_digest(key) for key in left]
            about = (context.workspace, f"dedupe:{parameters.memory}", list(dict.fromkeys(keys)))
            claimed = await values.claim(*about, parse_duration(parameters.ttl), context.idempotency_key)
            is_new = dict(zip(dict.fromkeys(keys), claimed, strict=True))
            left = {key: item for (key, item), digest in zip(left.items(), keys, strict=True) if is_new[digest]}
        items = list(left.values())
        return Output(items, ("some" if items else "none",))


def _distinct(how: Dedupe.Parameters) -> dict[Any, JSON]:
    """The items of the list by what makes them alike, in their order."""
    looks = [getter(path) for path in how.by]
    found: dict[Any, JSON] = {}
    for item in how.items if how.keep == "first" else reversed(how.items):
        found.setdefault(identity([look(item) for look in looks] if looks else item), item)
    return found if how.keep == "first" else dict(reversed(found.items()))


def _digest(key: Any) -> str:
    """A text that is the same in every process for the same JSON."""
    return hashlib.sha256(_plain(key).encode()).hexdigest()


def _plain(key: Any) -> str:
    match key:
        case frozenset():
            return f"{{{','.join(sorted(_plain(part) for part in key))}}}"
        case tuple():
            return f"[{','.join(map(_plain, key))}]"
        case float() if key.is_integer():
            return repr(int(key))
        case _:
            return repr(key)
