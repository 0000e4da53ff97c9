"""What a server answers about workflows, their versions and what they are made of."""

from typing import Any, Literal, TypedDict

from ropewalk.core.canonical import JSON


class DefinitionSummary(TypedDict):
    """A workflow by its name; `published` is the version that starts take."""

    id: str
    name: str
    published: int | None
    latest: int
    archivedAt: str | None
    createdAt: str


class Definition(DefinitionSummary):
    """A workflow with its latest document; `hash` is what a save on top of it names."""

    version: int
    hash: str
    document: dict[str, Any]


class Version(TypedDict):
    """One version of a workflow, without its document; `shares`: it reaches only what is shared with its saver."""

    version: int
    hash: str
    createdAt: str
    createdBy: str
    reach: Literal["workspace", "shares"]


class VersionDocument(Version):
    """One version as it was saved."""

    document: dict[str, Any]


class Saved(TypedDict):
    """Where a document was saved."""

    id: str
    version: int
    hash: str


class Changed(TypedDict):
    """A workflow that was told something; `changed` is false if that held already."""

    id: str
    changed: bool


class DocumentProblem(TypedDict):
    """One thing to mend in a document."""

    field: str
    message: str
    line: int | None


class Verdict(TypedDict):
    """Whether a document may be saved, and if not, everything that is wrong with it."""

    valid: bool
    hash: str | None
    problems: list[DocumentProblem]


class NodeType(TypedDict):
    """A kind of node, with the JSON Schemas of its parameters and its output."""

    name: str
    title: str
    description: str
    category: str
    icon: str
    keywords: list[str]
    ports: list[str] | None
    portDescriptions: dict[str, str]
    isWait: bool
    parameters: dict[str, Any]
    output: dict[str, Any]
    credentials: dict[str, list[str]]


class ExpressionProblem(TypedDict):
    """Why an expression has no value, and where that shows."""

    message: str
    position: int


class Evaluated(TypedDict):
    """The value of an expression, or the error instead."""

    value: JSON
    error: ExpressionProblem | None
