"""What is bounded by a share speaks to executions of what is shared, and to no others."""

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.events import RunWaiting
from ropewalk.store import executions
from tests.api.doors.test_reach import Json, failure, save, share, started, subject
from tests.api.stories import Town, fields
from tests.engines.worlds import act, flow, node

SHARED = flow(node("a", "noop"), name="shared")
SECRET = flow(node("hear", "wait", signal="go"), name="secret")


def starting(workflow: str) -> Json:
    return flow(node("go", "workflow.start", workflow=workflow), name="shared")


def speaking(type_name: str) -> Json:
    given = {"signal": "go"} if type_name == "execution.signal" else {}
    return flow(node("say", type_name, execution="{{ input }}", **given), name="shared")


async def states(town: Town) -> list[str]:
    return [each.state for each in await executions.listed(town.service.store, "default", limit=100)]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (starting("secret"), "nodes[0].with.workflow"),
        (flow(node("say", "event.emit", subject="order.paid"), name="shared"), "nodes[0].with.subject"),
    ],
)
async def test_a_share_saves_no_start_of_what_is_not_shared_and_no_event(town: Town, document: Json, field: str):
    shared, _ = await town.service.save(SHARED), await town.service.save(SECRET)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)

    refused = await save(town, shared.workflow, document, guest)

    assert (refused.status_code, fields(refused)) == (422, [field])
    assert (await save(town, shared.workflow, document, town.root)).status_code == 201


async def test_who_starts_what_a_member_saved_starts_and_emits_no_more_than_their_share(town: Town):
    await town.service.save(SECRET)
    start = await town.service.save(starting("{{ input }}"))
    guest = await town.shared_with(start.workflow, Role.OPERATOR)

    there, absent = [await started(town, start.workflow, guest, input=each) for each in ("secret", "absent")]

    told = [(await failure(town, each)).error.message for each in (there, absent)]
    assert told[0] == told[1].replace("absent", "secret")
    assert f"out of reach of {subject(guest)}" in told[0]
    emit = await town.service.save(flow(node("say", "event.emit", subject="order.paid"), name="emit"))
    await share(town, emit.workflow, guest, Role.OPERATOR)
    by_guest = await started(town, emit.workflow, guest)
    assert "the event 'order.paid' is out of reach" in (await failure(town, by_guest)).error.message


async def test_what_a_bounded_execution_starts_is_bounded_too(town: Town):
    await town.service.save(SECRET)
    middle = await town.service.save({**starting("secret"), "name": "middle"})
    start = await town.service.save(starting("middle"))
    guest = await town.shared_with(start.workflow, Role.OPERATOR)
    await share(town, middle.workflow, guest, Role.OPERATOR)

    ended = await town.service.ended(await started(town, start.workflow, guest))

    inner = ended.output["go"]["execution"]
    assert f"out of reach of {subject(guest)}" in (await failure(town, inner)).error.message


@pytest.mark.parametrize("type_name", ["execution.signal", "execution.cancel"])
async def test_a_bounded_execution_speaks_to_executions_of_what_is_shared_alone(town: Town, type_name: str):
    secret = await town.service.save(SECRET)
    say = await town.service.save(speaking(type_name))
    guest = await town.shared_with(say.workflow, Role.OPERATOR)
    other = await town.service.start(secret)
    await town.until(other, RunWaiting)

    there, absent = [await started(town, say.workflow, guest, input=each) for each in (other, "absent")]
    told = [(await failure(town, each)).error.message for each in (there, absent)]
    assert told[0] == told[1].replace("absent", other)
    assert f"out of reach of {subject(guest)}" in told[0]
    await share(town, secret.workflow, guest, Role.OPERATOR)
    allowed = await started(town, say.workflow, guest, input=other)

    assert (await town.service.ended(allowed)).state == "SUCCESS"
    assert (await town.service.ended(other)).state == ("SUCCESS" if type_name.endswith("signal") else "CANCELLED")


async def test_a_guest_hands_no_values_to_an_execution_that_speaks_to_others(town: Town):
    broken = act("a", "{{ 1 + null }}", retry={"maxAttempts": 1})
    say = node("say", "execution.cancel", execution="{{ nodes.a.output }}")
    shared = await town.service.save(flow(broken, say, edges="a->say", name="shared"))
    guest = await town.shared_with(shared.workflow, Role.OPERATOR)
    letter = (await town.letter(await started(town, shared.workflow)))["id"]

    fix = {"output": "any id"}
    answer = await town.ask(
        "POST", f"/workflow/dead-letters/{letter}/fix", guest, params={"workspaceId": "default"}, json=fix
    )

    assert answer.status_code == 403
    assert "another execution" in answer.json()["detail"]


async def test_an_execution_of_another_workspace_is_not_there(town: Town):
    here = await town.start(SECRET)
    await town.until(here, RunWaiting)
    await town.workspace("theirs")
    elsewhere = town.service.of("theirs")
    say = await elsewhere.save(speaking("execution.cancel"))

    failed = await failure(town, await elsewhere.start(say, here))

    assert failed.error.message == f"there is no execution '{here}'"
    assert "RUNNING" in await states(town)
