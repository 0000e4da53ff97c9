"""The fuzzer itself: it finds nothing here, and would find what it is for."""

import json
import random
import time

import pytest

from ropewalk.core.expression import Scope
from tests.core.expression.test_limits import MOST_MILLISECONDS
from tools import fuzz


def test_twenty_thousand_random_expressions_are_values_or_typed_errors(monkeypatch):
    monkeypatch.setattr(fuzz, "MAX_MILLISECONDS", MOST_MILLISECONDS)

    report = fuzz.fuzz(20_000, seed=20_261_115)

    assert report.failure is None
    assert report.count == 20_000
    assert report.values > 4_000
    assert report.errors > 4_000


def test_a_seed_gives_the_same_expressions_again():
    sources = [[fuzz.random_source(random.Random(seed)) for _ in range(20)] for seed in (1, 1, 2)]

    assert sources[0] == sources[1]
    assert sources[0] != sources[2]


def compute_for(milliseconds):
    """Uses up a little more than so much of the processor's time, on a machine of any speed."""
    until = time.thread_time() + milliseconds * 1.05 / 1000
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize(
    ("misbehaviour", "found"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: float("nan"), "ValueError"),
        (lambda: compute_for(fuzz.MAX_MILLISECONDS), " ms"),
        (lambda: len(bytes(64 << 20)), " MiB"),
    ],
)
def test_an_expression_that_misbehaves_is_found(monkeypatch, misbehaviour, found):
    monkeypatch.setattr(fuzz, "attempt", lambda *_, **__: fuzz.Outcome(has_value=True, value=misbehaviour()))

    report = fuzz.fuzz(3, seed=1)

    assert found in report.failure
    assert report.failure.startswith("case 0: seed 1: ")
    assert report.count == 1


def test_a_report_is_json_lines(capsys):
    fuzz.print_report(fuzz.fuzz(10, seed=1))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert {line["workload"] for line in lines} == {"fuzz"}
    assert all(line["n"] == 10 for line in lines)


def test_a_hostile_scope_is_never_changed_by_an_expression():
    scope = Scope(input={"list": [3, 1, 2], "object": {"a": 1}})
    for source in ("sort(input.list)", "reverse(input.list)", "merge(input.object, {a: 2})", "input.list + [4]"):
        fuzz.attempt(source, scope, is_template=False)

    assert scope.input == {"list": [3, 1, 2], "object": {"a": 1}}
