"""The description of the API: complete, true to its own schemas, and with names that stay."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from ropewalk.api.app import assemble
from ropewalk.api.doors.authorization import PUBLIC
from tests.api.house import API, House

DESCRIPTION: dict[str, Any] = assemble("test").openapi()
OPERATIONS = {
    operation["operationId"]: operation for path in DESCRIPTION["paths"].values() for operation in path.values()
}
STABLE = (Path(__file__).parent / "operations.txt").read_text().split()


def examples(part: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Every example with the schema it is an example of."""
    if isinstance(part, list):
        for place, inner in enumerate(part):
            yield from examples(inner, f"{where}/{place}")
    elif isinstance(part, dict):
        schema = part.get("schema", part)
        if "example" in part and isinstance(schema, dict):
            yield f"{where}/example", schema, part["example"]
        if isinstance(part.get("examples"), list):
            yield from ((f"{where}/examples/{i}", schema, each) for i, each in enumerate(part["examples"]))
        for name, inner in part.items():
            if name not in ("example", "examples"):
                yield from examples(inner, f"{where}/{name}")


EXAMPLES = list(examples(DESCRIPTION))


@pytest.mark.parametrize(("where", "schema", "example"), EXAMPLES, ids=[where for where, _, _ in EXAMPLES])
def test_an_example_is_an_example_of_its_schema(where: str, schema: dict[str, Any], example: Any):
    whole = {**schema, "components": DESCRIPTION["components"]}

    assert [error.message for error in jsonschema_rs.validator_for(whole).iter_errors(example)] == []


def test_there_are_examples():
    assert len(EXAMPLES) >= 15


def test_operation_ids_are_unique_and_those_that_were_promised():
    ids = [operation["operationId"] for path in DESCRIPTION["paths"].values() for operation in path.values()]

    assert sorted(ids) == STABLE


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_says_what_it_does_what_it_gives_and_what_it_needs(name: str):
    operation = OPERATIONS[name]

    assert operation["summary"]
    assert operation["description"]
    assert "x-right" in operation or name in PUBLIC
    assert any(status.startswith("2") for status in operation["responses"])


def test_every_tag_is_described():
    described = {tag["name"] for tag in DESCRIPTION["tags"] if tag["description"]}

    assert {tag for operation in OPERATIONS.values() for tag in operation["tags"]} <= described


async def test_it_is_served_to_everyone(house: House):
    async with house.client(None) as client:
        answer = await client.get(f"{API}/openapi.json")

    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["openapi"].startswith("3.1")
    assert answer.json() == json.loads(json.dumps(DESCRIPTION))
