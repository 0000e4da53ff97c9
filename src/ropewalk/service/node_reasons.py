"""Why a node, or an item of a map, is not running now; or that it is."""

from typing import Final, assert_never

from msgspec.structs import replace

from ropewalk.core.execution.work import Map, Phase, Work
from ropewalk.core.instant import moment
from ropewalk.core.plan import DEFAULT_ATTEMPT_TIMEOUT
from ropewalk.core.reach import OUT_OF_REACH
from ropewalk.core.state import NodeState, RunState
from ropewalk.service.closing_reasons import not_yet, undone
from ropewalk.service.facts import Facts
from ropewalk.service.reading.nodes import detail_of
from ropewalk.service.reasons import FEW, Cause, Json, Reason, brief, clock, command, count, few, lapse
from ropewalk.service.wait_reasons import retrying, waiting
from ropewalk.store.offers import RUNNER
from ropewalk.store.workers import Worker

SETTLED: Final = (NodeState.SUCCESS, NodeState.SKIPPED)


def node_answer(f: Facts, index: int, held: Reason | None) -> Json:
    """One node: its state, its reason and, of a map, the items that are under way and do not run.

    `held` is what keeps the execution as a whole from starting anything.
    """
    reason = node_reason(f, index, held).json()
    items = [work_reason(f, work, held).json() for work in _stuck_items(f, index)]
    about = {name: reason[name] for name in ("code", "why", "waitsFor", "command", "action")}
    return {"id": f.story.plan.ids[index], "state": str(f.x.node_state(index)), **about, "items": items}


def node_reason(f: Facts, index: int, held: Reason | None) -> Reason:
    """Why a node is where it is."""
    state = f.x.node_state(index)
    match state:
        case NodeState.SUCCESS | NodeState.SKIPPED | NodeState.CANCELLED:
            return _mending(f, index) if is_mending(f, index) else _over(f, index, state)
        case NodeState.FAILED:
            return _failed(f, index)
        case NodeState.WAITING | NodeState.BLOCKED:
            return _behind(f, index)
        case NodeState.READY | NodeState.RUNNING:
            is_map = index in f.x.maps and f.x.works[index].phase is Phase.ENDED
            return _map(f, index, f.x.maps[index]) if is_map else work_reason(f, f.x.works[index], held)
        case _:
            assert_never(state)


def work_reason(f: Facts, work: Work, held: Reason | None) -> Reason:
    """Why the attempts at one node or item are where they are."""
    return replace(_work(f, work, held), node=f.story.plan.ids[work.node], item=work.item)


def _work(f: Facts, work: Work, held: Reason | None) -> Reason:
    match work.phase:
        case Phase.READY:
            return _held_back(f, work) if held is None else _with_the_whole(held)
        case Phase.RUNNING:
            return _under_way(f, work)
        case Phase.WAITING:
            return waiting(f, work)
        case Phase.BACKOFF:
            return retrying(f, work)
        case Phase.ENDED:
            return Reason(Cause.ENDING, "is over; the execution ends without another attempt")
        case _:
            assert_never(work.phase)


# Nodes that are over, or not yet begun


def _over(f: Facts, index: int, state: NodeState) -> Reason:
    row = f.nodes[f.story.plan.ids[index]]
    at = "" if row.finished is None else f" at {clock(row.finished, f.now)}"
    unwanted = "no edge into it is live" if index < f.story.plan.ordinary else "nothing had to be undone"
    words = {NodeState.SUCCESS: "succeeded", NodeState.SKIPPED: f"was skipped: {unwanted}"}
    why, details = f"{words.get(state, 'was cancelled')}{at}", {"at": moment(row.finished)}
    letters = [letter.id for letter in f.dead_letters if letter.node == row.node]
    if not letters:
        return Reason(Cause(state), why, details)
    kept = {"deadLetters": letters[:FEW], "deadLetterCount": len(letters)}
    why = f"{why}; of its items that failed and were tolerated, {count(len(letters), 'dead letter')} can be requeued"
    return Reason(Cause(state), why, {**details, **kept}, command("dlq", "requeue", letters[0]))


def _failed(f: Facts, index: int) -> Reason:
    node, error = f.story.plan.ids[index], f.x.errors[index]
    letters = [letter.id for letter in f.dead_letters if letter.node == node]
    is_last, is_handled = index >= f.story.plan.ordinary, index not in f.x.unhandled
    verb = "failed, which an error edge handles" if is_handled else "failed"
    if not is_handled and index in f.story.plan.error_ways:
        verb = "failed, and no error edge is for such a failure"
    is_handled, verb = (True, "failed, and the outcome stands") if is_last else (is_handled, verb)
    details = {
        "errorType": str(error.type),
        "error": error.message,
        "detail": detail_of(f.nodes[node], f.failed_items),
        "attempts": error.attempts,
        "deadLetters": letters[:FEW],
        "deadLetterCount": len(letters),
    }
    if error.faults:
        details["faults"] = list(error.faults)
    bounded_by = f.story.accepted.bounded_by
    if bounded_by and OUT_OF_REACH in error.message:
        details |= {"boundedBy": list(bounded_by), "versionBoundedBy": f.story.version_bounded_by}
    wrong = f" ({brief(error.faults[0])})" if error.faults else ""
    remedy = _remedy(f, [] if is_last else letters, is_handled)
    return Reason(Cause.FAILED, f"{verb}: {brief(error.message)}{wrong}", details, remedy)


def _remedy(f: Facts, letters: list[str], is_handled: bool) -> str | None:
    if undone(f):
        return None
    if letters:
        return command("dlq", "requeue", letters[0])
    return command("retry", f.id) if f.x.state.is_reopenable and not is_handled else None


def _behind(f: Facts, index: int) -> Reason:
    """The nodes before it that are not done; a failed one keeps it until a person mends that."""
    if (waits := not_yet(f, index)) is not None:
        return waits
    x, ids = f.x, f.story.plan.ids
    sources = [each for each in f.story.plan.predecessors(index) if not _is_decided(f, each)]
    failed = [each for each in sources if each in x.unhandled]
    names = [ids[each] for each in sources]
    details = {"nodes": names[:FEW], "count": len(names)}
    why = f"behind {few(names)}"
    if failed:
        which = "which failed" if len(names) == 1 else f"of which {ids[failed[0]]} failed"
        return Reason(Cause.BLOCKED, f"{why}, {which}", details, _failed(f, failed[0]).command)
    return Reason(Cause.BLOCKED if x.is_ended else Cause.PREDECESSORS, why, details)


def _is_decided(f: Facts, source: int) -> bool:
    state = f.x.nodes[source]
    return state in SETTLED or (state is NodeState.FAILED and source not in f.x.unhandled)


# Maps


def _map(f: Facts, index: int, map_: Map) -> Reason:
    node = f.story.plan.ids[index]
    done, failed = f.done_items[node], len(map_.errors)
    left = map_.count - done - failed - map_.in_flight
    why = f"{done} of {map_.count} items done, {failed} failed, {map_.in_flight} under way"
    details = {
        "items": map_.count,
        "done": done,
        "failed": failed,
        "underWay": map_.in_flight,
        "left": left,
        "concurrency": map_.width,
    }
    if map_.given_up:
        then = "but every item is tried" if map_.goes_on else "so no more start"
        return Reason(Cause.ITEMS, f"{why}; too many failed, {then}", details)
    if left and map_.in_flight >= map_.width:
        return Reason(Cause.MAP_CONCURRENCY, f"{why}; concurrency {map_.width} is reached, {left} wait", details)
    return Reason(Cause.ITEMS, why, details)


def is_mending(f: Facts, index: int) -> bool:
    """Whether the node is a map that has succeeded, and items that it tolerated are under way again."""
    return index in f.x.maps and f.x.maps[index].is_mending


def _mending(f: Facts, index: int) -> Reason:
    reason = _map(f, index, f.x.maps[index])
    return replace(reason, why=f"succeeded, and what it tolerated is tried again: {reason.why}")


def _stuck_items(f: Facts, index: int) -> list[Work]:
    """The first items of a map that are under way and do not run."""
    if index not in f.x.maps or f.x.is_ended:
        return []
    works = f.x.maps[index].works
    open_works = (works[item] for item in sorted(works) if works[item].phase is not Phase.ENDED)
    return [work for work in open_works if not is_running(f, work)][:FEW]


# Attempts


def _with_the_whole(held: Reason) -> Reason:
    why = f"ready; its execution is held up: {held.why}"
    return Reason(Cause.EXECUTION, why, {"code": str(held.code)}, held.command, held.action)


def is_running(f: Facts, work: Work) -> bool:
    """Whether a live worker or runner carries an attempt out."""
    return work.phase is Phase.RUNNING and _under_way(f, work).code is Cause.RUNNING


def _under_way(f: Facts, work: Work) -> Reason:
    shared = f.shared.get((f.story.plan.ids[work.node], work.item))
    if shared is None:
        return _lost(f, work) if f.is_owner_lost or not f.around.living else _running(f, work, f.owner)
    if shared.state == RunState.PENDING:
        return _held_back(f, work)
    if shared.lease_until is not None and shared.lease_until < f.now:
        ended = clock(shared.lease_until, f.now)
        why = f"attempt {work.attempt} was leased by {shared.leased_by} until {ended}; it counts as lost"
        return Reason(Cause.ATTEMPT_LOST, why, {"worker": shared.leased_by, "leaseUntil": moment(shared.lease_until)})
    return _running(f, work, shared.leased_by)


def _running(f: Facts, work: Work, worker: str | None) -> Reason:
    plan = f.story.plan
    since = f.runs[plan.ids[work.node], work.item].started
    limit = plan.timeouts[work.node] or DEFAULT_ATTEMPT_TIMEOUT
    on = "" if worker is None else f" on {worker if worker.startswith(RUNNER) else f'worker {worker}'}"
    details = {
        "worker": worker,
        "attempt": work.attempt,
        "since": moment(since),
        "timesOutAt": moment(since + limit),
    }
    why = f"attempt {work.attempt} is running{on} since {clock(since, f.now)}, for {lapse(f.now - since)}"
    return Reason(Cause.RUNNING, why, details)


def _lost(f: Facts, work: Work) -> Reason:
    why = f"attempt {work.attempt} was under way when its worker was last heard of; it will be made again"
    return Reason(Cause.ATTEMPT_LOST, why, {"worker": f.owner, "attempt": work.attempt})


def _held_back(f: Facts, work: Work) -> Reason:
    """Why an attempt that may start in an execution that runs has not."""
    limit, pool = f.story.plan.max_parallel, f.story.plan.definition.nodes[work.node].get("pool")
    if work.phase is Phase.READY and limit is not None and not work.used and f.x.places <= 0:
        details = {"maxParallel": limit, "running": limit - f.x.places}
        return Reason(Cause.MAX_PARALLEL, f"ready; maxParallel {limit} is reached", details)
    if work.phase is Phase.READY and not work.used and f.x.places <= 0 and (waits := not_yet(f, work.node)) is not None:
        return waits
    served = [worker for worker in f.around.living if worker.pool == pool and worker.slots]
    if pool is not None and not served:
        why = f"ready; no worker is alive for pool {brief(pool)}"
        action = f"start a worker with --pool {brief(pool)}, or a runner that leases from it"
        return Reason(Cause.NO_WORKER_IN_POOL, why, {"pool": pool}, action=action)
    return _waits_for_slot(f, work, served if pool is not None else _candidates(f, work))


def _candidates(f: Facts, work: Work) -> list[Worker]:
    """Which workers could carry out an attempt that asks for no pool: its owner, or any once it may be leased."""
    if work.phase is Phase.RUNNING:
        return f.around.executing
    owner = f.around.worker(f.owner)
    return [] if owner is None else [owner]


def _waits_for_slot(f: Facts, work: Work, workers: list[Worker]) -> Reason:
    details = {"workers": [load(worker) for worker in workers[:FEW]]}
    if workers and all(map(is_full, workers)):
        busy = few([f"{worker.id} ({worker.load} of {worker.slots})" for worker in workers])
        why = f"ready; {count(len(workers), 'worker')} could take it and none has room: {busy}"
        return Reason(Cause.WORKER_FULL, why, details, action="wait, or start another worker")
    return Reason(Cause.TURN, "ready; starts as soon as its worker has a free slot", details)


def is_full(worker: Worker) -> bool:
    """Whether a worker that says how much it can do does that much."""
    return 0 < worker.slots <= worker.load


def load(worker: Worker) -> Json:
    return {"id": worker.id, "load": worker.load, "slots": worker.slots}
