"""Maps: SPEC §3.8."""

from ropewalk.core.events import ItemFailed, ItemsStarted, ItemSucceeded, RunWaiting
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.service.dead_letter_bulk import Outcome
from ropewalk.store.dlq import Wanted
from tests.engines.worlds import Json, World, act, flow, node

FAILS_FOR_ODD = "{{ item % 2 == 1 ? 9 : 0 }}"


def mapped(**given: object) -> Json:
    return flow(act("each", "{{ item * 10 }}", forEach="{{ input }}", **given), output="{{ nodes.each.output }}")


async def a_map_gives_the_outputs_of_its_items_in_order(world: World) -> None:
    ended = await world.run(mapped(), [3, 1, 2])

    assert ended.output == [30, 10, 20]


async def a_map_of_nothing_gives_nothing(world: World) -> None:
    ended = await world.run(mapped(), [])

    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, [])


async def a_map_over_what_is_no_list_fails_for_good(world: World) -> None:
    ended = await world.run(mapped(), {"not": "a list"})

    (letter,) = await world.letters(ended.execution)
    assert (ended.state, letter["failureType"]) == (ExecutionState.FAILED, "PERMANENT_ERROR")
    assert "no list" in letter["reason"]


async def items_know_their_place(world: World) -> None:
    document = flow(act("each", "{{ index }}: {{ item }}", forEach=["a", "b"]), output="{{ nodes.each.output }}")

    assert (await world.run(document)).output == ["0: a", "1: b"]


async def no_more_items_run_at_once_than_the_map_allows(world: World) -> None:
    document = flow(node("each", "gate", value="{{ item }}", forEach="{{ input }}", concurrency=3))
    execution = await world.start(document, list(range(10)))
    gate = world.outside.gate()
    await gate.arrived(3)
    gate.open()

    ended = await world.ended(execution)

    assert ended.output == {"each": list(range(10))}
    assert gate.most == 3
    assert (await world.events(execution, ItemsStarted))[0].items == (0, 1, 2)


async def an_item_is_tried_again_by_itself(world: World) -> None:
    ended = await world.run(mapped(fails="{{ item == 2 ? 2 : 0 }}"), [1, 2, 3])

    assert ended.output == [10, 20, 30]
    assert [world.outside.saw(ended.execution, "each", item) for item in range(3)] == [1, 3, 1]


async def failures_within_the_tolerance_leave_null_and_are_listed(world: World) -> None:
    document = flow(
        act("each", "{{ item }}", fails=FAILS_FOR_ODD, kind="PERMANENT", forEach="{{ input }}", failureTolerance=2),
        act("after", "{{ nodes.each.errors }}"), edges="each->after",
        output=["{{ nodes.each.output }}", "{{ map(nodes.after.output, e => e.index) }}"],
    )  # fmt: skip

    ended = await world.run(document, [0, 1, 2, 3])

    assert ended.output == [[0, None, 2, None], [1, 3]]
    assert await world.letters(ended.execution) == []


async def a_tolerance_may_be_a_share(world: World) -> None:
    given = {"fails": FAILS_FOR_ODD, "kind": "PERMANENT", "failureTolerance": "50%"}

    assert (await world.run(mapped(**given), [0, 1, 2, 3])).state is ExecutionState.SUCCESS
    assert (await world.run(mapped(**given), [1, 1, 2, 3])).state is ExecutionState.FAILED


async def one_failure_too_many_stops_the_map_and_leaves_a_dead_letter_each(world: World) -> None:
    document = mapped(fails=FAILS_FOR_ODD, kind="PERMANENT", concurrency=1, failureTolerance=1)

    ended = await world.run(document, [1, 2, 3, 4, 5, 6])

    assert ended.state is ExecutionState.FAILED
    assert [letter["item"] for letter in await world.letters(ended.execution)] == [0, 2]
    assert [world.outside.saw(ended.execution, "each", item) for item in range(6)] == [1, 1, 1, 0, 0, 0]


async def requeued_items_take_along_those_that_never_ran(world: World) -> None:
    document = mapped(fails="{{ item == 1 ? 1 : 0 }}", kind="PERMANENT", concurrency=1)
    ended = await world.run(document, [0, 1, 2, 3])
    assert world.outside.saw(ended.execution, "each", 3) == 0

    await world.requeue(ended.execution)
    ended = await world.ended(ended.execution)

    assert ended.output == [0, 10, 20, 30]
    assert [world.outside.saw(ended.execution, "each", item) for item in range(4)] == [1, 2, 1, 1]


async def a_fixed_item_has_the_output_a_person_gave(world: World) -> None:
    document = mapped(fails="{{ item == 1 ? 9 : 0 }}", kind="PERMANENT", concurrency=1)
    ended = await world.run(document, [0, 1, 2])
    (letter,) = await world.letters(ended.execution)

    await world.service.fix(letter["id"], "by hand")
    ended = await world.ended(ended.execution)

    assert ended.output == [0, "by hand", 20]
    assert [each["id"] for each in await world.letters(ended.execution, Resolution.FIXED)] == [letter["id"]]


async def an_error_edge_handles_a_failed_map(world: World) -> None:
    document = flow(
        act("each", fails=9, kind="PERMANENT", forEach=[1, 2, 3], concurrency=1),
        act("alert", "{{ nodes.each.error.message }}"), edges="each->alert:error",
    )  # fmt: skip

    ended = await world.run(document)

    assert ended.state is ExecutionState.SUCCESS
    assert ended.output == {"alert": "1 of 3 items failed, 0 tolerated; the first: no luck"}
    assert await world.letters(ended.execution) == []
    assert len(await world.events(ended.execution, ItemFailed)) == 1


async def a_map_of_many_items_ends(world: World) -> None:
    ended = await world.run(mapped(concurrency=50), list(range(500)))

    assert ended.output == [10 * item for item in range(500)]


# What becomes of items that fail


async def fifty_of_two_thousand_items_fail_and_are_mended_in_bulk(world: World) -> None:
    document = mapped(fails="{{ item % 40 == 7 ? 1 : 0 }}", kind="PERMANENT", concurrency=100, onItemFailure="continue")
    ended = await world.run(document, list(range(2_000)))
    letters = await world.letters(ended.execution)
    assert (ended.state, len(letters)) == (ExecutionState.FAILED, 50)
    assert [letter["item"] for letter in letters] == list(range(7, 2_000, 40))

    await world.service.fix(letters[0]["id"], "by hand")
    done = [each.outcome async for each in world.service.dead_letters.requeue_all(Wanted(node="each"))]
    ended = await world.ended(ended.execution)

    assert done == [Outcome.REQUEUED] * 49
    assert ended.state is ExecutionState.SUCCESS
    assert ended.output == [10 * item if item != 7 else "by hand" for item in range(2_000)]
    assert await world.letters(ended.execution) == []


def tolerant(**given: object) -> Json:
    kept = {"failureTolerance": "50%", "deadLetters": "always", "kind": "PERMANENT"}
    return flow(
        act("each", "{{ item }}", fails="{{ item % 2 }}", forEach="{{ input }}", **kept, **given),
        act("after", "{{ length(nodes.each.errors) }}"), edges="each->after",
        output=["{{ nodes.each.output }}", "{{ map(nodes.each.errors, e => e.index) }}", "{{ nodes.after.output }}"],
    )  # fmt: skip


async def what_a_map_tolerated_is_requeued_after_its_execution_succeeded(world: World) -> None:
    ended = await world.run(tolerant(), [0, 1, 2, 3])
    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, [[0, None, 2, None], [1, 3], 2])
    assert [letter["item"] for letter in await world.letters(ended.execution)] == [1, 3]

    await world.requeue(ended.execution)
    ended = await world.ended(ended.execution)

    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, [[0, 1, 2, 3], [], 2])
    assert [world.outside.saw(ended.execution, "each", item) for item in range(4)] == [1, 2, 1, 2]
    assert world.outside.saw(ended.execution, "after") == 1


async def what_a_map_tolerated_is_mended_one_by_one_across_restarts(world: World) -> None:
    ended = await world.run(tolerant(), [0, 1, 2, 3])
    first, second = await world.letters(ended.execution)

    await world.restart()
    await world.service.fix(first["id"], "by hand")
    ended = await world.ended(ended.execution)
    assert ended.output == [[0, "by hand", 2, None], [3], 2]
    await world.restart()
    await world.service.requeue(second["id"])
    ended = await world.ended(ended.execution)

    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, [[0, "by hand", 2, 3], [], 2])
    assert await world.states(ended.execution) == "SUCCESS SUCCESS"


async def mending_goes_on_after_a_crash(world: World) -> None:
    document = flow(node("each", "gate", value="{{ item }}", forEach=[1], failureTolerance=1))
    execution = await world.start(document)
    await world.outside.gate().arrived()
    await world.service.give_up(execution, "each", 0)
    assert (await world.ended(execution)).output == {"each": [None]}
    await world.requeue(execution)
    await world.outside.gate().arrived()

    await world.crash()
    world.outside.gate().open()
    await world.open()

    assert (await world.ended(execution)).output == {"each": [1]}


async def what_a_map_tolerated_is_mended_while_its_execution_goes_on(world: World) -> None:
    document = flow(
        act("each", "{{ item }}", fails="{{ item % 2 }}", forEach="{{ input }}", kind="PERMANENT",
            failureTolerance=1, deadLetters="always"),
        node("wait", "approval", title="Go on?"),
        act("after", "{{ nodes.each.output }}"), edges="each->wait wait->after:approved",
        output="{{ nodes.after.output }}",
    )  # fmt: skip
    execution = await world.start(document, [0, 1])
    await world.until(execution, RunWaiting, "wait")

    await world.requeue(execution)
    await world.until(execution, ItemSucceeded, "each", 2)
    await world.service.decide(execution, "wait", approved=True)

    assert (await world.ended(execution)).output == [0, 1]
