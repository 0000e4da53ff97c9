"""Expressions over HTTP: a value or a typed error, and never more than that."""

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.service.reading.recorded import AT_ONCE, MOST_WAITING, offload
from tests.api.house import House

CONTEXT = {
    "input": {"total": 21, "lines": [1, 2]},
    "vars": {"shop": "s"},
    "nodes": {"pay": {"output": {"id": 7}, "state": "SUCCESS"}},
    "item": "i",
    "index": 3,
    "env": {"NAME": "x"},
}


async def evaluate(house: House, expression: Any, context: Any = CONTEXT) -> Any:
    body = {"expression": expression, "context": context}
    return await house.ask("POST", "/workflow/expressions/evaluate", json=body)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("{{ input.total * 2 }}", 42),
        ("input.total * 2", 42),
        ("{{ vars.shop }}-{{ item }}-{{ index }}", "s-i-3"),
        ("nodes.pay.output.id", 7),
        ("nodes.other.output", None),
        ("env.NAME", "x"),
        ("[input.lines, {a: null}]", [[1, 2], {"a": None}]),
    ],
)
async def test_an_expression_has_a_value(house: House, expression: str, value: Any):
    assert (await evaluate(house, expression)).json() == {"value": value, "error": None}


@pytest.mark.parametrize(
    ("expression", "position"), [("input.total +", 13), ("{{ null + 1 }}", 3), ("a {{ nothing }}", 5)]
)
async def test_an_expression_without_a_value_says_why_and_where(house: House, expression: str, position: int):
    answer = (await evaluate(house, expression)).json()

    assert answer["value"] is None
    assert answer["error"]["message"]
    assert abs(answer["error"]["position"] - position) <= 5


async def test_it_ends_within_its_steps(house: House):
    context = {"input": list(range(1_000))}

    answer = await evaluate(house, "input | map(x => input | map(y => x * y))", context)

    assert "steps" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"expression": ""},
        {"expression": "x" * 20_000},
        {"expression": 1},
        {"expression": "1", "context": {"index": -1}},
        {"expression": "1", "context": {"secrets": {}}},
        {"expression": "1", "context": {"nodes": {"a": 1}}},
    ],
)
async def test_what_does_not_fit_is_refused_with_its_field(house: House, body: Any):
    answer = await house.ask("POST", "/workflow/expressions/evaluate", json=body)

    assert answer.status_code == 422
    assert answer.json()["problems"]


async def test_a_viewer_may_try_expressions_and_a_runner_may_not(house: House):
    keys = [await house.key(role) for role in (Role.VIEWER, Role.RUNNER)]

    answers = [await house.ask("POST", "/workflow/expressions/evaluate", key, json={"expression": "1"}) for key in keys]

    assert [answer.status_code for answer in answers] == [200, 403]


COSTLY = " ".join(["{{ length(map(range(0, 90), a => map(range(0, 9), b => a * b + 1))) }}"] * 20)


@asynccontextmanager
async def held_up() -> AsyncIterator[None]:
    """Nothing that is computed for a caller begins until the block is left: what the caller asks for waits."""
    is_over = threading.Event()
    holding = [asyncio.ensure_future(offload(is_over.wait, is_large=True)) for _ in range(AT_ONCE)]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        is_over.set()
        await asyncio.gather(*holding)


async def test_one_caller_with_many_evaluations_keeps_no_other_waiting(house: House):
    eager, patient = await house.key(Role.VIEWER), await house.key(Role.VIEWER)

    async def evaluate(token: str) -> int:
        return (
            await house.ask("POST", "/workflow/expressions/evaluate", token, json={"expression": COSTLY})
        ).status_code

    async with held_up():
        many = [asyncio.ensure_future(evaluate(eager)) for _ in range(100)]
        for refused in itertools.islice(asyncio.as_completed(many), 100 - MOST_WAITING):
            await refused
    other = await evaluate(patient)
    is_first = sum(not each.done() for each in many) > MOST_WAITING // 2
    statuses = Counter(await asyncio.gather(*many))

    assert (other, is_first) == (200, True)
    assert statuses == {200: MOST_WAITING, 429: 100 - MOST_WAITING}
