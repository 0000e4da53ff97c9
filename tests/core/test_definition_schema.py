"""The published JSON Schema of the document agrees with what is accepted."""

import json

import pytest

from ropewalk.core.definition.fields import EDGE, NODE, RETRY, TOP
from ropewalk.core.definition.triggers import CRON, EVENT, QUEUE, WEBHOOK
from ropewalk.core.schema import check_schema, validate
from tests.core.test_definition import REFUND, document, node, trigger
from tools.workflow_schema import render

SCHEMA = json.loads(render())


def test_the_published_schema_is_a_schema():
    assert check_schema(SCHEMA) == []


@pytest.mark.parametrize(
    "written",
    [
        REFUND,
        {"name": "empty"},
        node(retry={"delay": 5}, failureTolerance="5%", forEach=[1], credentials={"a": "b"}, cache={"ttl": "PT5S"}),
        node(forEach=[1], onItemFailure="continue", deadLetters="always"),
        trigger(cron="0 5 * * 1"),
        trigger(webhook="orders", methods=["GET"]),
    ],
)
def test_what_is_accepted_fits_the_published_schema(written):
    assert validate(SCHEMA, written) == []


@pytest.mark.parametrize(
    "written",
    [
        [],
        {},
        document(colour="red"),
        document(timeout="soon"),
        document(onFailure="explode"),
        node(id="1a"),
        node(colour="red"),
        node(retry={"maxAttempts": 0}),
        node(failureTolerance="110%"),
        node(onItemFailure="continue"),
        node(forEach=[1], deadLetters="never"),
        document("a b", "a"),
        trigger(cron="@daily", event="a"),
        trigger(event="a", colour=1),
    ],
)
def test_what_the_tables_refuse_does_not_fit_the_published_schema(written):
    assert validate(SCHEMA, written) != []


@pytest.mark.parametrize("record", [TOP, NODE, EDGE, RETRY, CRON, EVENT, WEBHOOK, QUEUE])
def test_every_field_says_what_it_is_for(record):
    described = record.schema()["properties"]

    assert list(described) == list(record.fields)
    assert all(each["description"].endswith(".") for each in described.values())
