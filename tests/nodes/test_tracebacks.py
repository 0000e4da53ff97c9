"""The traceback of a node: what its author needs, in bounds, and without secrets."""

import time
from typing import Any, NoReturn

import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.failure import LONGEST_DETAIL, NodeFailure, failure_of
from ropewalk.nodes.function import node
from ropewalk.nodes.masking import Masking

HOSTILE = "paid\n2026-11-18 ERROR engine │ forged\r\x1b[2J\x00\u2028"


def dig(depth: int, error: Exception) -> NoReturn:
    if depth == 0:
        raise error
    dig(depth - 1, error)


def caught(error: Exception, depth: int = 3) -> Exception:
    try:
        dig(depth, error)
    except Exception as raised:
        return raised


def detail_of(raised: BaseException) -> str:
    detail = failure_of(raised).detail
    assert detail is not None
    return detail


def test_a_traceback_has_the_form_that_python_gives_it():
    lines = detail_of(caught(ValueError("seven"), 1)).splitlines()

    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{__file__}", line ')
    assert lines[2] == "    dig(depth, error)"
    assert lines[-1] == "ValueError: seven"


async def test_the_frames_of_the_engine_are_left_out(run: Any):
    @node
    async def charge() -> None:
        dig(1, ValueError("seven"))

    with pytest.raises(ValueError) as raised:
        await charge.run(None, None)

    assert "ropewalk/nodes" not in detail_of(raised.value)
    assert "in charge" in detail_of(raised.value)


def test_a_failure_that_a_node_tells_itself_says_where_it_was_told():
    error = failure_of(caught(NodeFailure.permanent("no such order", status=404)))

    assert (error.type, error.message, error.status) == (ErrorType.PERMANENT, "no such order", 404)
    assert "in dig" in (error.detail or "")


def test_the_detail_that_a_node_gives_itself_stands():
    assert failure_of(caught(NodeFailure.permanent("no", detail="mine"))).detail == "mine"


@pytest.fixture
def deep() -> Any:
    import sys

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield 10_000
    sys.setrecursionlimit(limit)


def test_of_ten_thousand_frames_the_first_and_the_last_are_told_at_once(deep: int):
    raised = caught(ValueError("at the bottom"), deep)
    began = time.perf_counter()

    told = detail_of(raised)

    assert time.perf_counter() - began < 2
    assert len(told) <= LONGEST_DETAIL
    assert "in caught" in told.splitlines()[1]
    assert "raise error" in told.splitlines()[-2]
    assert " frames left out …" in told


def test_a_message_of_a_megabyte_leaves_room_for_the_frames():
    error = failure_of(caught(ValueError("x" * 2**20)))

    assert len(error.message) == 1_000
    assert len(error.detail or "") <= LONGEST_DETAIL
    assert "in dig" in (error.detail or "")


def test_every_text_can_be_stored():
    error = failure_of(caught(ValueError(HOSTILE + "\ud800")))

    assert "\x00" not in error.message + (error.detail or "")
    (error.message + (error.detail or "")).encode()


def test_of_a_long_chain_of_causes_the_root_and_the_end_are_told():
    raised = ValueError("the root")
    for number in range(500):
        outer = RuntimeError(f"number {number}")
        outer.__cause__ = caught(raised, 20)
        raised = outer

    told = detail_of(raised)

    assert len(told) <= LONGEST_DETAIL
    assert "ValueError: the root" in told
    assert "exceptions left out" in told
    assert told.endswith("RuntimeError: number 499")


def test_causes_that_go_in_a_circle_come_to_an_end():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    assert "The above exception was the direct cause" in detail_of(one)


def test_what_was_being_handled_and_notes_are_told_too():
    try:
        try:
            dig(1, KeyError("first"))
        except KeyError:
            raise ValueError("second")  # noqa: B904 -- on purpose
    except ValueError as raised:
        raised.add_note("order 7")
        told = detail_of(raised)

    assert told.endswith("ValueError: second\norder 7")


def test_groups_within_groups_are_told_however_deep():
    raised: Exception = NodeFailure.permanent("no")
    for _ in range(5_000):
        raised = ExceptionGroup("tasks", [raised])

    assert failure_of(raised).message == "no"


@pytest.mark.parametrize("ahead", range(0, 400, 7))
def test_no_part_of_a_secret_is_left_where_a_traceback_is_cut(ahead: int):
    secret = "tok-4f9a77e1c0de55aa"
    mask = Masking([secret]).text
    cause = caught(ValueError("y" * (700 + ahead) + secret * 40), 60)
    raised = RuntimeError("z" * (900 + ahead // 4) + secret)
    raised.__cause__ = cause
    raised.add_note("n" * (950 + ahead // 8) + secret)

    error = failure_of(raised, mask)

    told = error.message + (error.detail or "")
    assert [secret[:size] for size in range(6, len(secret)) if secret[:size] in told] == []
