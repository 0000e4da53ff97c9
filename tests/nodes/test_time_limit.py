"""The time limit of a call, of its own or shared with others."""

import asyncio

import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.http import time_limit
from ropewalk.nodes.http.time_limit import TimeLimit


@pytest.fixture
def all_shared(monkeypatch):
    monkeypatch.setattr(time_limit, "SHORTEST_SHARED", 0.0)
    monkeypatch.setattr(time_limit, "TICK", 0.01)


async def never():
    await asyncio.Event().wait()


async def test_a_shared_limit_ends_what_takes_longer(all_shared):
    loop = asyncio.get_running_loop()
    began = loop.time()

    with pytest.raises(TimeoutError):
        async with TimeLimit(0.03) as limit:
            await never()

    assert limit.expired()
    assert 0.03 <= loop.time() - began < 1


async def test_calls_that_begin_together_share_one_timer_and_leave_it(all_shared):
    loop = asyncio.get_running_loop()

    async def call():
        async with TimeLimit(0.5):
            await asyncio.sleep(0)
            return sum(len(each) for each in time_limit._of_loops[loop].values())

    counts = await asyncio.gather(*(call() for _ in range(50)))

    assert max(counts) == 50
    assert len(time_limit._of_loops[loop]) <= 50 // 5
    assert not any(time_limit._of_loops[loop].values())


async def test_a_timeout_of_another_kind_is_not_taken_for_the_limit(all_shared):
    with pytest.raises(TimeoutError):
        async with TimeLimit(5) as limit:
            raise TimeoutError

    assert not limit.expired()


async def test_a_call_that_is_cancelled_stays_cancelled(all_shared):
    async def call():
        async with TimeLimit(5):
            await never()

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_request_to_a_silent_server_ends_by_the_shared_limit(all_shared, run, peer):
    silent = await peer(None)

    with pytest.raises(NodeFailure) as caught:
        await run("http.request", {"url": f"http://127.0.0.1:{silent.port}/", "timeout": "50ms"})

    assert caught.value.error.type is ErrorType.TIMEOUT
    assert "took longer than 0.05 s" in caught.value.error.message


async def test_a_limit_inside_another_ends_alone(all_shared):
    with pytest.raises(TimeoutError):
        async with TimeLimit(5) as outer, TimeLimit(0.02) as inner:
            await never()

    assert (inner.expired(), outer.expired()) == (True, False)


async def test_a_task_whose_limit_passed_goes_on_as_one_that_was_never_cancelled(all_shared):
    with pytest.raises(TimeoutError):
        async with TimeLimit(0.02):
            await never()

    assert asyncio.current_task().cancelling() == 0
    await asyncio.sleep(0)


async def test_a_task_that_is_cancelled_while_its_limit_passes_stays_cancelled(all_shared):
    async def call():
        async with TimeLimit(0.02) as limit:
            try:
                await never()
            finally:
                asyncio.current_task().cancel()
                assert limit.expired()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(call())
