"""`set`: an object, or each object of a list, made of fields that are given, kept, dropped and converted."""

from typing import Any, Self, TypeAlias

from pydantic import Field, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import Kind, converted
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.paths import FieldPath, drop, kept, put

JSON: TypeAlias = Any

MOST_FIELDS = 1_000
FEW = 50


class SetField(Inputs):
    """One field that is set."""

    path: FieldPath = Field(
        description="Where the value goes; objects are made on the way.", examples=["customer.city"]
    )
    value: JSON = Field(None, description="The value.", examples=["{{ input.city }}"])
    type: Kind = Field(
        "any", description="What the value is converted to; as it is by default. Null stays null.", examples=["number"]
    )


class Set(NodeType):
    name = "set"
    summary = "Makes an object of the values it is given, or changes fields of an object or of each object of a list."
    about = About(
        title="Set fields",
        category="data",
        icon="pencil",
        keywords=("edit", "fields", "assign", "rename", "map", "convert", "object", "keep", "drop"),
        output={
            "type": ["object", "array"],
            "description": "The object; of a list, a list of objects.",
        },
    )
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        values: dict[str, JSON] = Field(
            {}, description="Values by name; the names are taken as they are.", examples=[{"city": "{{ input.city }}"}]
        )
        source: dict[str, JSON] | list[dict[str, JSON]] | None = Field(
            None, alias="from", description="The object, or list of objects, to begin with; an empty one by default.",
            examples=["{{ nodes.order.output.body }}"],
        )  # fmt: skip
        keep: list[FieldPath] | None = Field(
            None, max_length=MOST_FIELDS, description="The paths of the fields of `from` to keep; all by default.",
            examples=[["id", "customer.name"]],
        )  # fmt: skip
        drop: list[FieldPath] = Field(
            [], max_length=MOST_FIELDS, description="The paths of the fields of `from` to leave out.",
            examples=[["password", "lines[0]"]],
        )  # fmt: skip
        fields: list[SetField] = Field(
            [], max_length=MOST_FIELDS, description="Values by path, converted where a type is given; set last.",
            examples=[[{"path": "customer.age", "value": "{{ input.age }}", "type": "integer"}]],
        )  # fmt: skip

        @model_validator(mode="after")
        def _has_source(self) -> Self:
            if "source" not in self.model_fields_set and (self.keep is not None or self.drop):
                raise ValueError("keep and drop choose fields of an object: give from")
            return self

    def accept(self, inputs: Any) -> "Parameters | dict[str, JSON]":
        """The bare values where there is nothing else, without a model: that is what most nodes of this type have."""
        if inputs and len(inputs) == 1 and type(inputs.get("values")) is dict:
            values: dict[str, JSON] = inputs["values"]
            return values
        accepted: Set.Parameters = super().accept(inputs)
        return accepted

    def takes_long(self, parameters: "Parameters | dict[str, JSON]") -> bool:
        return isinstance(parameters, self.Parameters) and len(parameters.source or ()) > FEW

    async def run(self, parameters: "Parameters | dict[str, JSON]", context: NodeContext) -> Output:
        if isinstance(parameters, dict):
            return Output(parameters)
        fields = [(field.path, _converted(field, at), at) for at, field in enumerate(parameters.fields)]
        if isinstance(parameters.source, list):
            return Output([_shaped(each, parameters, fields) for each in parameters.source])
        return Output(_shaped(parameters.source or {}, parameters, fields))


def _converted(field: SetField, at: int) -> JSON:
    try:
        return converted(field.value, field.type)
    except ValueError as error:
        raise NodeFailure.permanent(f"with.fields[{at}].value: {error}") from None


def _shaped(source: dict[str, JSON], how: Set.Parameters, fields: list[tuple[str, JSON, int]]) -> dict[str, JSON]:
    made = source if how.keep is None else kept(source, how.keep)
    for path in how.drop:
        drop(made, path)
    made |= how.values
    for path, value, at in fields:
        try:
            put(made, path, value)
        except ValueError as error:
            raise NodeFailure.permanent(f"with.fields[{at}].path: {error}") from None
    return made
