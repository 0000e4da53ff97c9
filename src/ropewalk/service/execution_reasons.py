"""Why an execution as a whole is not running now; or that it is, and where."""

from itertools import islice

import msgspec
from msgspec.structs import replace

from ropewalk.core.duration import MINUTE
from ropewalk.core.errors import UnknownVersion, Unreadable, VersionLost
from ropewalk.core.events import CancelRequested, ExecutionPaused, StopRequested
from ropewalk.core.execution.work import Phase, Work
from ropewalk.core.instant import moment
from ropewalk.core.signals import BY_PARENT
from ropewalk.core.state import ExecutionState, QueueState
from ropewalk.service.closing_reasons import closing, undone
from ropewalk.service.facts import Facts, QueuePosition
from ropewalk.service.node_reasons import is_full, is_running, load, work_reason
from ropewalk.service.reasons import FEW, Cause, Json, Reason, brief, clock, command, count, few, lapse, nth
from ropewalk.store.executions import Execution
from ropewalk.store.explain import MOST_COUNTED, Holder, Place, UnreadSignal
from ropewalk.store.queue import QueueEntry

LONGEST_CLAIM = 5 * MINUTE
"""After so long the claim of a worker that is alive and does nothing about it is released."""

START = "start a worker"
LEFT = 0
"""When a worker was last heard of that has left in order."""


def whole_reasons(f: Facts) -> list[Reason]:
    """Everything that would have to change before the execution goes on, what weighs most first."""
    if f.x.is_ended:
        return [_ended(f), *_dispatch_failed(f.line.entry)]
    if f.holding.is_set_aside:
        return [_set_aside(f), *_unread(f)]
    return [*_standing_still(f), *closing(f), *_unread(f)]


def _standing_still(f: Facts) -> list[Reason]:
    if f.x.ending is not None:
        return [_ending(f, f.x.ending), *_worker(f)]
    if f.x.state is ExecutionState.PAUSED:
        return [_paused(f)]
    no_worker = _worker(f)
    if f.x.needs_slot:
        return [*no_worker, *_stuck(f), *_queued(f, has_worker=not no_worker)]
    return no_worker or _going(f)


def holds_all(reasons: list[Reason]) -> Reason | None:
    """The first of an execution's reasons that keeps every node of it from starting."""
    return next((each for each in reasons if each.node is None and each.code not in _HARMLESS), None)


def unreadable_reasons(row: Execution, entry: QueueEntry | None, error: Unreadable) -> list[Reason]:
    """Why an execution does not run of which only the tables can be read."""
    is_lost = isinstance(error, VersionLost) and not ExecutionState(row.state).is_ended
    typed = command("cancel", row.id) if is_lost else None if isinstance(error, UnknownVersion) else command("check")
    why = f"what is stored of it cannot be read: {brief(error.why)}"
    details = {"workflow": row.workflow, "version": row.version, "error": error.why}
    return [Reason(Cause.UNREADABLE, why, details, typed, error.remedy), *_dispatch_failed(entry)]


_HARMLESS = (Cause.RUNNING, Cause.UNREAD_SIGNALS, Cause.CLOSING)

# Set aside


def _set_aside(f: Facts) -> Reason:
    deaths, since = f.holding.deaths, f.holding.set_aside_at
    at = "" if since is None else f" at {clock(since, f.now)}"
    why = f"it was set aside{at}: it was under way in {count(deaths, 'death')} of its worker, one after the other"
    again = "find out why its workers died (memory, as a rule); resume takes it up again, cancel ends it"
    return Reason(Cause.SET_ASIDE, why, {"deaths": deaths, "since": moment(since)}, command("resume", f.id), again)


# Over, ending, paused


def _ended(f: Facts) -> Reason:
    state, at = f.x.state, f.row.finished_at if f.row.finished_at is not None else f.x.now
    letters = [letter.id for letter in f.dead_letters]
    error = "" if f.row.error is None else f": {brief(f.row.error)}"
    lying = f"; {count(len(letters), 'dead letter')} to be worked off" if letters else ""
    details = {
        "state": str(state),
        "at": moment(at),
        "error": f.row.error,
        "deadLetters": letters[:FEW],
        "deadLetterCount": len(letters),
    }
    why = f"it ended {state} at {clock(at, f.now)}, {lapse(f.now - at)} ago{error}{lying}"
    if gone := undone(f):
        again = f"it has undone {few(gone)}, so it is over for good; a replay is a new execution, and so is a rerun"
        return Reason(Cause.ENDED, why, details, command("replay", f.id), again)
    if state.is_reopenable:
        again = "retry reopens it, and so does the requeue or fix of a dead letter"
        return Reason(Cause.ENDED, why, details, command("retry", f.id), again)
    if letters and state is ExecutionState.SUCCESS and f.story.accepted.parent is None:
        again = "requeue or fix of a dead letter reopens it, and completes the output of its map"
        return Reason(Cause.ENDED, why, details, command("dlq", "requeue", letters[0]), again)
    return Reason(Cause.ENDED, why, details, command("replay", f.id), f"{state} is final; a replay is a new execution")


def _dispatch_failed(entry: QueueEntry | None) -> list[Reason]:
    if entry is None or entry.state != QueueState.FAILED or entry.error is None:
        return []
    why = f"it could not be dispatched in {count(entry.attempts, 'attempt')}: {brief(entry.error)}"
    return [Reason(Cause.DISPATCH_FAILED, why, {"attempts": entry.attempts, "error": entry.error})]


def _stuck(f: Facts) -> list[Reason]:
    """The queue gave the execution up, which has not failed itself: what kept it may have been mended since."""
    again = f"mend what the error tells of, then pause and resume it: {command('resume', f.id)} puts it in the queue"
    return [replace(each, command=command("pause", f.id), action=again) for each in _dispatch_failed(f.line.entry)]


def _ending(f: Facts, ending: ExecutionState) -> Reason:
    running = f.x.running
    until = "" if f.x.grace_until is None else f", until {clock(f.x.grace_until, f.now)} at the latest"
    details = {"state": str(ending), "running": running, "graceUntil": moment(f.x.grace_until)}
    why = f"{_ending_because(f, ending)}; {count(running, 'attempt')} under way may end first{until}"
    return Reason(Cause.ENDING, why, details)


def _ending_because(f: Facts, ending: ExecutionState) -> str:
    if ending is ExecutionState.TIMEOUT:
        return "its time limit has passed"
    for event in reversed(f.story.events):
        match event:
            case CancelRequested():
                return f"it is being cancelled by {brief(event.by)}{_because(event.reason)}"
            case StopRequested():
                word = "stop" if event.grace_until is None else "cancel"
                return f"node {event.node} failed and onFailure is {word}"
            case _:
                continue
    return f"it is about to end {ending}"


def _because(reason: str | None) -> str:
    return "" if reason is None else f" ({brief(reason)})"


def _paused(f: Facts) -> Reason:
    pause = next(event for event in reversed(f.story.events) if isinstance(event, ExecutionPaused))
    parent = f.story.accepted.parent
    by, resumed = brief(pause.by), f.id
    if parent is not None and pause.by == BY_PARENT:
        by, resumed = f"its parent, execution {parent.execution}", parent.execution
    finishing = f"; {count(f.x.running, 'attempt')} under way may end" if f.x.running else ""
    details = {"by": pause.by, "reason": pause.reason, "since": moment(pause.at), "running": f.x.running}
    why = f"it was paused by {by} at {clock(pause.at, f.now)}{_because(pause.reason)}{finishing}"
    return Reason(Cause.PAUSED, why, details, command("resume", resumed))


def _unread(f: Facts) -> list[Reason]:
    """What the execution was told, and its worker has not read yet."""
    if not f.unread:
        return []
    kinds = [_kind(each) for each in f.unread]
    since = f.unread[0].sent_at
    why = f"it has been told something it has not taken in since {clock(since, f.now)}: {few(kinds)}"
    return [Reason(Cause.UNREAD_SIGNALS, why, {"signals": kinds, "since": moment(since)})]


def _kind(unread: UnreadSignal) -> str:
    try:
        return msgspec.json.decode(unread.signal, type=_Told).type
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "what cannot be read"


class _Told(msgspec.Struct):
    type: str


# Workers


def _worker(f: Facts) -> list[Reason]:
    """Whether there is a worker to execute it."""
    if not f.around.executing and (f.owner is None or f.is_owner_lost):
        return [_no_worker(f)]
    return [_owner_lost(f, f.owner)] if f.is_owner_lost and f.owner is not None else []


def _no_worker(f: Facts) -> Reason:
    last = next((worker for worker in f.around.workers if worker.heartbeat_at != LEFT), None)
    details = {} if last is None else {"worker": last.id, "lastHeardOf": moment(last.heartbeat_at)}
    if f.around.takeover is None and f.around.accepts_only:
        helps = "start the server without --no-dispatch (dispatcher.enabled)"
        return Reason(Cause.NO_WORKER, "the server of this store accepts only, and executes nothing", {}, action=helps)
    if f.around.takeover is None:
        return Reason(Cause.NO_WORKER, "no process executes on this store", details, command("resume", f.id))
    if f.around.living:
        others = few([worker.id for worker in f.around.living])
        why = f"no worker takes executions; those who are alive accept only, serve a pool or are leaving: {others}"
        return Reason(Cause.NO_WORKER, why, {"others": [load(each) for each in f.around.living[:FEW]]}, action=START)
    heard = f"; {last.id} was last heard of {lapse(f.now - last.heartbeat_at)} ago" if last else ""
    return Reason(Cause.NO_WORKER, f"no worker is alive{heard}", details, action=START)


def _owner_lost(f: Facts, owner: str) -> Reason:
    worker = f.around.worker(owner)
    if worker is None or worker.heartbeat_at == LEFT:
        return Reason(Cause.OWNER_LOST, f"its worker {owner} has left; another takes over at once", {"worker": owner})
    heard = worker.heartbeat_at
    by = None if f.around.takeover is None else heard + f.around.takeover
    latest = "" if by is None else f"; another takes over at {clock(by, f.now)} at the latest"
    if by is not None and by <= f.now:
        latest = "; another is about to take over"
    details = {"worker": owner, "lastHeardOf": moment(heard), "takenOverBy": moment(by)}
    why = f"its worker {owner} was last heard of {lapse(f.now - heard)} ago{latest}"
    return Reason(Cause.OWNER_LOST, why, details)


# The queue


def _queued(f: Facts, *, has_worker: bool) -> list[Reason]:
    """What it stands in line for; its turn alone if nothing else is in the way."""
    line, entry = f.line, f.line.entry
    if entry is not None and entry.state in (QueueState.CLAIMED, QueueState.DISPATCHED):
        return [_claimed(f, entry)]
    found = []
    if entry is not None and entry.not_before > f.now:
        found.append(_not_before(f, entry))
    if line.key_holder is not None:
        found.append(_key(f, line.key_holder))
    if line.slots is not None and line.taken >= line.slots:
        found.append(_capacity(f, line, line.slots))
    is_failed = entry is not None and entry.state == QueueState.FAILED
    return found if found or is_failed or not has_worker else [_turn(f, line)]


def _claimed(f: Facts, entry: QueueEntry) -> Reason:
    at = entry.claimed_at if entry.claimed_at is not None else entry.enqueued_at
    worker = f.around.worker(entry.claimed_by)
    released = at + LONGEST_CLAIM
    if f.around.takeover is not None and worker is not None and not f.around.alive(worker):
        released = worker.heartbeat_at + f.around.takeover
    details = {"worker": entry.claimed_by, "claimedAt": moment(at), "releasedAt": moment(released)}
    why = (
        f"worker {entry.claimed_by} claimed it at {clock(at, f.now)} and is about to start it;"
        f" if it does not, the claim ends at {clock(released, f.now)}"
    )
    return Reason(Cause.CLAIMED, why, details)


def _not_before(f: Facts, entry: QueueEntry) -> Reason:
    at = clock(entry.not_before, f.now)
    details = {"notBefore": moment(entry.not_before), "attempts": entry.attempts, "error": entry.error}
    tried = f" after {count(entry.attempts, 'attempt')}" if entry.attempts else ""
    error = "" if entry.error is None else f"; the last trouble: {brief(entry.error)}"
    return Reason(Cause.NOT_BEFORE, f"it is not dispatched before {at}{tried}{error}", details)


def _key(f: Facts, holder: Holder) -> Reason:
    key = f.story.accepted.concurrency_key
    named = f" {brief(key)!r}"
    if not f.around.visibility.others:
        return Reason(Cause.CONCURRENCY_KEY, f"its concurrency key{named} is held by another execution", {"key": key})
    details = {"key": key, "execution": holder.execution, "worker": holder.worker}
    why = f"its concurrency key{named} is held by execution {holder.execution}"
    return Reason(Cause.CONCURRENCY_KEY, why, details, command("explain", holder.execution))


def _capacity(f: Facts, line: QueuePosition, slots: int) -> Reason:
    workspace, holders = f.around.workspace, line.holders if f.around.visibility.others else []
    details = {
        "workspace": workspace,
        "taken": line.taken,
        "slots": slots,
        **_placed(line.place),
        "holders": [{"execution": each.execution, "worker": each.worker} for each in holders],
    }
    held = f", held by {few([each.execution for each in holders])}" if holders else ""
    why = (
        f"it waits for capacity of workspace {workspace}: {line.taken} of {slots} slots are taken{_in_line(line)}{held}"
    )
    help_ = f"wait until one of them ends, or give workspace {workspace} more slots"
    return Reason(Cause.CAPACITY, why, details, action=help_)


def _turn(f: Facts, line: QueuePosition) -> Reason:
    takers = f.around.executing
    if takers and all(map(is_full, takers)):
        busy = few([f"{worker.id} ({worker.load} of {worker.slots})" for worker in takers])
        details: Json = {"workers": [load(worker) for worker in takers[:FEW]], **_placed(line.place)}
        why = f"every worker is full{_in_line(line)}: {busy}"
        return Reason(Cause.WORKERS_FULL, why, details, action="wait, or start another worker")
    details = {"workspace": f.around.workspace, **_placed(line.place)}
    return Reason(Cause.TURN, f"it starts as soon as a worker takes it{_in_line(line)}", details)


def _placed(place: Place | None) -> Json:
    return {} if place is None else {"position": place.position, "waiting": place.total}


def _in_line(line: QueuePosition) -> str:
    place = line.place
    if place is None:
        return ""
    if place.position is None:
        return f"; more than {MOST_COUNTED:,} go before it in the queue"
    return f"; it is {nth(place.position)} of {place.total or f'more than {MOST_COUNTED:,}'} in the queue"


# Under way


def _going(f: Facts) -> list[Reason]:
    """What runs; if nothing does, what is waited for."""
    works = [work for work in f.x.active_works() if work.phase is not Phase.ENDED]
    running = [work for work in works if is_running(f, work)]
    if running:
        return [_runs(f, running)]
    return [work_reason(f, work, None) for work in islice(works, FEW)]


def _runs(f: Facts, works: list[Work]) -> Reason:
    first = [work_reason(f, work, None) for work in works[:FEW]]
    names = [_name(f, work) for work in works]
    where = "" if f.owner is None else f" on worker {f.owner}"
    nodes = [{"node": each.node, "item": each.item, **each.waits_for} for each in first]
    since = min(f.runs[f.story.plan.ids[work.node], work.item].started for work in works)
    details = {"worker": f.owner, "since": moment(since), "nodes": nodes, "count": len(works)}
    return Reason(Cause.RUNNING, f"it runs{where} since {clock(since, f.now)}: {few(names)}", details)


def _name(f: Facts, work: Work) -> str:
    node = f.story.plan.ids[work.node]
    return node if work.item is None else f"{node}[{work.item}]"
