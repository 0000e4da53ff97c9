"""What every noun's bodies and answers have in common."""

from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ropewalk.api.shapes.cursors import LONGEST, Cursors

Item = TypeVar("Item")


class Body(BaseModel):
    """What a client sends: camelCase, no coercion, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class Answer(BaseModel):
    """What a client gets."""

    # Built when it is first given, so that a server starts faster. (For bodies this would bring warnings.)
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, defer_build=True)


def exemplified(kind: type[BaseModel], *examples: dict[str, Any]) -> ConfigDict:
    """What a body or an answer is like, for readers: the settings of its kind with examples."""
    return ConfigDict(**{**kind.model_config, "json_schema_extra": {"examples": list(examples)}})


class FieldProblem(Answer):
    """One thing to mend."""

    field: str
    message: str


class Problem(Answer):
    """Why a request was refused (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    problems: list[FieldProblem] | None = None


class Page(Answer, Generic[Item]):
    """A part of a list; `next` is the cursor to go on, null at the end."""

    items: list[Item]
    next: str | None = None


Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
Cursor = Annotated[
    str | None, Query(max_length=LONGEST, pattern=r"^[A-Za-z0-9_=-]*$", description="`next` of the page before.")
]
Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
LONGEST_NAME: Final = 200
NAMED: Final = r"^[^\x00]+$"
BY_NAME: Final = "The id of a workflow, or its name. What is the id of one and the name of another is the id."
Named = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=NAMED, description=BY_NAME)]
ChosenWorkflow = Annotated[
    str | None, Query(alias="workflowId", min_length=1, max_length=LONGEST_NAME, pattern=NAMED, description=BY_NAME)
]

IdPart = Annotated[
    str | None,
    Query(alias="idPart", min_length=3, max_length=36, pattern=r"^[0-9a-f-]+$",
          description="Only those whose id begins or ends so: what people type."),
]  # fmt: skip


def page(cursors: Cursors, listing: str, items: list[dict[str, Any]], limit: int, place: Any) -> dict[str, Any]:
    """A page of a list; `place` is where the last item is, for the cursor."""
    return {"items": items, "next": cursors.write(listing, place) if len(items) == limit else None}
