"""Trace ids: continued from the caller that starts an execution, else its own."""

import pytest

from ropewalk.core.trace import read_traceparent, span_id, trace_id

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "header",
    [f"00-{TRACE}-{SPAN}-01", f" 00-{TRACE}-{SPAN}-01 ", f"01-{TRACE}-{SPAN}-01", f"01-{TRACE}-{SPAN}-01-more"],
)
def test_a_trace_is_continued_also_from_a_later_version_of_the_header(header: str):
    assert read_traceparent(header) == f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01\n\n\0",
        f"01-{TRACE}-{SPAN}-01-{'x' * 1_000}",
        f"00-{TRACE[:-1]}\u0664-{SPAN}-01",
    ],
)
def test_a_hostile_header_is_no_header(header: str | None):
    assert read_traceparent(header) is None


@pytest.mark.parametrize(
    ("execution", "continued", "trace"),
    [
        ("019A8b0c-3f1e-7c4e-9d53-2b1f0c9a7e11", None, "019a8b0c3f1e7c4e9d532b1f0c9a7e11"),
        ("019a8b0c-3f1e-7c4e-9d53-2b1f0c9a7e11", f"00-{TRACE}-{SPAN}-01", TRACE),
    ],
)
def test_an_execution_has_the_trace_it_continues_or_its_own(execution: str, continued: str | None, trace: str):
    assert trace_id(execution, continued) == trace


def test_an_execution_of_any_name_has_a_trace_of_32_digits():
    assert len(bytes.fromhex(trace_id("x", None))) == 16


def test_a_span_has_16_digits_that_follow_from_its_name():
    assert span_id("a") == span_id("a") != span_id("b")
    assert len(bytes.fromhex(span_id("a"))) == 8
