"""Whatever a parameter holds, a node type that shapes values gives an output or a permanent failure with a field."""

import random

import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure, check_output

STRANGE = [
    *(None, True, 0, -1, 1.5, 1e308, 2**53, "", "a", "\0", "\x7f", "é" * 300, "<a", "{", "%Y", "1e999", "a..b", "[0]"),
    *(
        [],
        [None],
        [[]],
        [{}],
        [1, "a"],
        {},
        {"a": {"b": [1]}},
        {"": ""},
        {"@": 1},
        {"#text": 1},
        [{"a": 1}, {"a": "x"}],
    ),
    *("2026-03-01T10:00:00Z", "0001-01-01", "9999-12-31T23:59:59-12:00", "tab", "(?i)(", "<% each 1 %>", "-----BEGIN"),
]
TYPES = [
    *("aggregate", "crypto.hash", "crypto.hmac", "crypto.sign", "crypto.verify", "csv.parse", "csv.write", "datetime"),
    *(
        "dedupe",
        "filter",
        "html.extract",
        "if",
        "json",
        "limit",
        "markdown.render",
        "merge",
        "noop",
        "note",
        "set",
        "sort",
    ),
    *("split", "switch", "text.template", "xml"),
]
ROUNDS = 150


def made(field, schema, chance):
    """A value for a field: an example, something strange, or what a nested model is made of."""
    if "$ref" in field:
        field = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]]
    if chance.random() < 0.3:
        return chance.choice(STRANGE)
    for several in ("anyOf", "oneOf"):
        if several in field:
            return made(chance.choice(field[several]), schema, chance)
    if "enum" in field:
        return chance.choice(field["enum"])
    if "properties" in field:
        return given(field, schema, chance)
    if field.get("type") == "array":
        return [made(field.get("items", {}), schema, chance) for _ in range(chance.randint(0, 3))]
    return chance.choice([*field.get("examples", ()), *STRANGE])


def given(model, schema, chance):
    fields = model.get("properties", {})
    required = model.get("required", ())
    return {
        name: made(field, schema, chance) for name, field in fields.items() if name in required or chance.random() < 0.4
    }


async def outcome(run, name, inputs):
    """The failure, or None for an output that can be recorded."""
    try:
        output = await run(name, inputs)
        check_output(output.value)
    except NodeFailure as failure:
        return failure.error
    return None


@pytest.mark.parametrize("name", TYPES)
async def test_strange_parameters_never_meet_a_fault_of_ours(run, registry, name):
    schema = registry.infos()[name].parameters
    chance = random.Random(name)
    for _ in range(ROUNDS):
        inputs = given(schema, schema, chance)
        error = await outcome(run, name, inputs)
        if error is not None:
            assert error.type is ErrorType.PERMANENT, inputs
            assert error.message.startswith(("with", "output", "values are not kept", "files are not kept")), (
                inputs,
                error,
            )
