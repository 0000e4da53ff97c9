"""A damaged execution is called what it is, by its name and with what to do; no other execution is affected."""

import asyncio

import pytest

from ropewalk.client.refusals import refusal_of
from ropewalk.core.errors import Unreadable
from ropewalk.core.events import RunWaiting
from tests.api.stories import EXECUTIONS, LETTERS, Town
from tests.api.streams import Listener, served
from tests.engines.worlds import ONCE, act, flow, node
from tests.store.damages import A_FEW, DAMAGES, damage

ASK = flow(node("ask", "approval", title="Really?"), name="asked")
READ = ("", "/nodes", "/runs", "/stream")
VERBS = {
    "pause": {}, "resume": {}, "signal": {"name": "x"}, "approve": {"node": "ask", "approved": True},
    "rerun": {"node": "ask"}, "replay": {},
}  # fmt: skip


async def asked(town: Town, name: str = "asked") -> str:
    """An execution that waits for a person."""
    execution = await town.start({**ASK, "name": name})
    await town.until(execution, RunWaiting)
    return execution


async def damaged(town: Town, how: str) -> str:
    """The same, when it is damaged in this way and no cache has it as it was."""
    execution = await asked(town)
    await damage(town.service.store, execution, how)
    town.service.engine.versions.forget()
    return execution


@pytest.mark.parametrize("how", DAMAGES)
async def test_every_question_about_a_damaged_execution_is_answered_with_its_name_and_what_to_do(
    each_town: Town, how: str
):
    execution = await damaged(each_town, how)

    answers = [await each_town.ask("GET", f"{EXECUTIONS}/{execution}{path}") for path in READ]
    answers += [await each_town.tell(f"{EXECUTIONS}/{execution}/{verb}", body) for verb, body in VERBS.items()]

    for answer in answers:
        said = answer.json()
        assert (answer.status_code, said["type"]) == (500, "urn:ropewalk:problem:unreadable"), answer.text
        assert said["detail"].startswith(f"execution {execution} cannot be read: ")
        assert "`ropewalk check`" in said["detail"] or "upgrade this Ropewalk" in said["detail"]
        assert isinstance(refusal_of(answer.status_code, answer.content), Unreadable)


@pytest.mark.parametrize("how", A_FEW)
async def test_a_damaged_execution_is_listed_and_the_others_go_on(each_town: Town, how: str):
    execution, other = await damaged(each_town, how), await asked(each_town, "other")

    listed = await each_town.get(EXECUTIONS)
    answer = await each_town.tell(f"{EXECUTIONS}/{other}/approve", {"node": "ask", "approved": True})

    assert {each["id"] for each in listed["items"]} == {execution, other}
    assert answer.status_code == 202
    assert (await each_town.service.ended(other)).state == "SUCCESS"


@pytest.mark.parametrize("how", ["half of an entry", "no log at all"])
async def test_a_workspace_is_followed_though_one_of_it_is_damaged(each_town: Town, how: str):
    execution, other = await damaged(each_town, how), await asked(each_town, "other")

    async with served(each_town) as url, asyncio.timeout(20):
        listener = await Listener.connect(url, "/workspaces/default/stream", each_town.root)
        [snapshot] = await listener.take(1)
        await each_town.service.decide(other, "ask", approved=True)
        told = [said.data["executionId"] for said in await listener.take(2)]

    assert other in {each["executionId"] for each in snapshot.data["executions"]}
    assert set(told) - {execution} == {other}


async def test_of_many_dead_letters_the_one_of_a_damaged_execution_is_refused_and_the_others_are_requeued(
    each_town: Town,
):
    weak = flow(act("a", fails=1, retry=ONCE), name="weak")
    first, *others = [await each_town.run(weak) for _ in range(3)]
    await damage(each_town.service.store, first, "half of an entry")
    fingerprint = (await each_town.letter(first))["fingerprint"]

    answer = await each_town.tell(f"{LETTERS}/requeue", {"fingerprint": fingerprint})
    outcomes = {each["executionId"]: each["outcome"] for each in answer.json()["letters"]}

    assert outcomes == {first: "REFUSED", **dict.fromkeys(others, "REQUEUED")}
    assert [(await each_town.service.ended(each)).state for each in others] == ["SUCCESS"] * 2


async def test_what_does_a_damaged_execution_again_can_be_read(each_town: Town):
    source = await each_town.run(flow(act("a", 7), name="done"))
    again = await each_town.service.replay(source)
    await each_town.service.ended(again)
    await damage(each_town.service.store, source, "half of an entry")

    assert (await each_town.get(f"{EXECUTIONS}/{again}"))["sameOutput"] is None
