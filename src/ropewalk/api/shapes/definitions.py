"""Workflow definitions as clients get them."""

from typing import Any, Final, Literal

from ropewalk.api.shapes.base import Answer, exemplified
from ropewalk.api.shapes.executions import A_HASH, AN_ID

_A_SUMMARY: Final = {
    "id": AN_ID, "name": "greet", "published": 1, "latest": 2, "archivedAt": None, "createdAt": "2026-11-16T08:00:00Z",
}  # fmt: skip
_A_VERSION: Final = {
    "version": 2,
    "hash": A_HASH,
    "createdAt": "2026-11-16T08:00:00Z",
    "createdBy": "user:ann",
    "reach": "workspace",
}
_A_DOCUMENT: Final = {"ropewalk": 1, "name": "greet", "nodes": [{"id": "hello", "type": "noop"}]}


class DefinitionSummary(Answer):
    """A workflow by its name; `published` is the version that starts take."""

    model_config = exemplified(Answer, _A_SUMMARY)

    id: str
    name: str
    published: int | None
    latest: int
    archived_at: str | None
    created_at: str


class DefinitionVersion(Answer):
    """One version, without its document; `reach` says whether it may use the whole workspace of its saver.

    `shares`: only what is shared with `createdBy`, who is no member.
    """

    model_config = exemplified(Answer, _A_VERSION)

    version: int
    hash: str
    created_at: str
    created_by: str
    reach: Literal["workspace", "shares"]


class DefinitionVersionDocument(DefinitionVersion):
    """One version, as it was saved."""

    model_config = exemplified(Answer, _A_VERSION | {"document": _A_DOCUMENT})

    document: dict[str, Any]


class Definition(DefinitionSummary):
    """A workflow with the document of one of its versions."""

    model_config = exemplified(Answer, _A_SUMMARY | {"version": 2, "hash": A_HASH, "document": _A_DOCUMENT})

    version: int
    hash: str
    document: dict[str, Any]


class SavedDefinition(Answer):
    """Where a document was saved; the ETag is its hash."""

    model_config = exemplified(Answer, {"id": AN_ID, "version": 2, "hash": A_HASH})

    id: str
    version: int
    hash: str


class DefinitionChanged(Answer):
    """A workflow that was told something; `changed` is false if that held already."""

    model_config = exemplified(Answer, {"id": AN_ID, "changed": True})

    id: str
    changed: bool


class DefinitionProblem(Answer):
    """One thing to mend; `line` where the document came as YAML."""

    model_config = exemplified(Answer, {"field": "nodes[0].type", "message": "unknown node type 'nop'", "line": 4})

    field: str
    message: str
    line: int | None


class Verdict(Answer):
    """Whether a document may be saved, and if not, everything that is wrong with it."""

    model_config = exemplified(Answer, {"valid": True, "hash": A_HASH, "problems": []})

    valid: bool
    hash: str | None
    problems: list[DefinitionProblem]


class FieldChange(Answer):
    """A field with what it was and what it is; null where it is not there."""

    field: str
    before: Any
    after: Any


class NodeChange(Answer):
    """A node of both versions, and what of it is not the same."""

    id: str
    changes: list[FieldChange]


class DefinitionDifference(Answer):
    """What the second version changes in the first."""

    model_config = exemplified(Answer, {
        "changes": [{"field": "timeout", "before": "1m", "after": "2m"}],
        "nodesAdded": [{"id": "bye", "type": "noop"}], "nodesRemoved": [],
        "nodesChanged": [{"id": "hello", "changes": [{"field": "timeout", "before": None, "after": "5s"}]}],
        "edgesAdded": [{"from": "hello", "to": "bye"}], "edgesRemoved": [],
    })  # fmt: skip

    changes: list[FieldChange]
    nodes_added: list[dict[str, Any]]
    nodes_removed: list[dict[str, Any]]
    nodes_changed: list[NodeChange]
    edges_added: list[dict[str, Any]]
    edges_removed: list[dict[str, Any]]
