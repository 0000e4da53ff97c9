"""Why something does not run: of which node one may ask, and of whom."""

import pytest

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import NotFound
from ropewalk.core.instant import rfc3339
from ropewalk.service.explaining import explain
from tests.engines.worlds import ONCE, World, act, flow
from tests.service.explanations import (
    ASK,
    UNKNOWN,
    explained,
    waiting,
    world,
)

__all__ = ["world"]


@pytest.mark.parametrize(
    ("asked", "code", "words"), [("good", "SUCCESS", "succeeded at "), ("no", "SKIPPED", "was skipped"),
                                 ("bad", "FAILED", "failed, which an error edge handles: no luck")]
)  # fmt: skip
async def test_a_node_that_is_done_says_so_when_asked(world: World, asked: str, code: str, words: str):
    document = flow(act("good"), act("bad", fails=9, retry=ONCE), act("no"), act("yes"), edges="bad->yes:error bad->no")
    ended = await world.run(document)

    [answer] = (await explained(world, ended.execution, node=asked))["nodes"]

    assert (answer["code"], answer["command"]) == (code, None)
    assert answer["why"].startswith(words)


async def test_a_cancelled_node_says_so_when_asked(world: World):
    execution = await waiting(world, flow(ASK))
    await world.service.cancel(execution)
    await world.ended(execution)

    [answer] = (await explained(world, execution, node="ask"))["nodes"]

    assert (answer["code"], answer["why"][:13]) == ("CANCELLED", "was cancelled")


async def test_what_does_not_exist_or_belongs_to_another_workspace_is_not_found(world: World):
    store, ended = world.service.store, await world.run(flow(act("a")))

    for workspace, execution, wanted in (
        ("default", UNKNOWN, None), ("other", ended.execution, None), ("default", ended.execution, "nosuch"),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            await explain(store, workspace, execution, store.now(), node=wanted)


async def test_an_explanation_says_when_it_was_true(world: World):
    ended = await world.run(flow(act("a")))
    now = world.service.store.now() + SECOND

    answer = await explain(world.service.store, "default", ended.execution, now)

    about = (answer["id"], answer["workflow"], answer["state"], answer["at"])
    assert about == (ended.execution, "test", "SUCCESS", rfc3339(now))
