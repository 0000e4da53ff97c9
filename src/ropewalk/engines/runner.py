"""Carries out one attempt at one node and says how it ended, as a signal. Never raises.

inputs → cache → rate limits → breaker → the node's own code → a classified outcome
"""

import asyncio
import random
from collections.abc import Coroutine
from functools import partial
from math import isfinite
from typing import Any

import msgspec

from ropewalk.core.brief import copied, copied_briefly
from ropewalk.core.canonical import LARGEST_INTEGER, content_hash, writable
from ropewalk.core.duration import HOUR, SECOND, format_duration
from ropewalk.core.errors import ErrorType, RunError, Unfinished
from ropewalk.core.events import Blob
from ropewalk.core.rate_limit import LATEST
from ropewalk.core.reach import refusal
from ropewalk.core.signals import Failed, Succeeded, Suspended
from ropewalk.core.waits import BreakerWait, RateLimitWait, TypeWait, Wait, writable_wait
from ropewalk.engines.run import Desk, Run
from ropewalk.nodes.base import (
    NodeContext,
    NodeFailure,
    NodeType,
    Output,
    check_output,
    failure_of,
)
from ropewalk.nodes.failure import LONGEST_BODY, LONGEST_DETAIL, LONGEST_MESSAGE, shortened
from ropewalk.nodes.recording import kept_apart, recorded, recorded_briefly
from ropewalk.nodes.values import plain_briefly
from ropewalk.telemetry.failures import STOPPED_MESSAGE

INLINE_LIMIT = 64 * 1024
LONGEST_HOLD = HOUR
LONGEST_TARGET = 1_000
# Long enough to be parked meanwhile, so that a worker with room takes it up, and not the same worker again.
TYPE_MISSING_PAUSE = 30 * SECOND
STOPPED = RunError(ErrorType.TRANSIENT, STOPPED_MESSAGE)
"""How an attempt ends that was told to."""

Outcome = Succeeded | Failed | Suspended
_waits = msgspec.json.Decoder(Wait)


async def run_node(run: Run, desk: Desk) -> Outcome:
    """Carry out the attempt; the answer is a signal, also if its node raises."""
    node_type = desk.types.for_runs(run.type)
    if node_type is None:
        # Another worker, or the next release of this one, may know it: no attempt is used up meanwhile.
        desk.types.miss(run.type)
        return _suspended(run, TypeWait(run.type, run.now + TYPE_MISSING_PAUSE))
    try:
        try:
            # A copy: parts of them are other nodes' outputs and the definition itself, and nodes may change theirs.
            given = copied_briefly(run.inputs, is_little=run.is_little) if run.inputs else {}
        except Unfinished:
            parameters = await _accepted(run, desk, node_type)
        else:
            parameters = node_type.accept(given)
        if run.cache_ttl is not None:
            return await _through_cache(run, desk, node_type, parameters, run.cache_ttl)
        target = node_type.target(parameters)
        if target is not None or run.rate_limit is not None:
            return await _call(run, desk, node_type, parameters, target)
        return await _carry_out(run, desk, node_type, parameters)
    except BaseException as raised:  # noqa: BLE001 -- a node's SystemExit is a failed node, not the end of the worker
        if isinstance(raised, asyncio.CancelledError):
            return failure(run, STOPPED)
        return failure(run, failure_of(raised))


async def _through_cache(run: Run, desk: Desk, node_type: NodeType, parameters: Any, ttl: int) -> Outcome:
    """The same inputs and configuration in the same workspace give the result that is kept."""
    key = cache_key(run.config_hash(), run.inputs_hash(), run.bounded_by())
    known = await desk.shelf.cached(run.workspace, key)
    if known is not None:
        return Succeeded(run.node, run.attempt, known.value, known.ports, run.item, run.inputs or None)
    target = node_type.target(parameters)
    is_plain = target is None and run.rate_limit is None
    work = _carry_out if is_plain else partial(_call, target=target)
    outcome = await work(run, desk, node_type, parameters)
    if isinstance(outcome, Succeeded) and outcome.blob is None:
        desk.shelf.cache(run.workspace, key, Output(outcome.output, outcome.ports), ttl)
    return outcome


def cache_key(config_hash: str, inputs_hash: str, bounded_by: tuple[str, ...] = ()) -> str:
    """Under what a result is kept for the same work with the same inputs.

    Executions that reach less than the workspace share their results with no other.
    """
    about = [config_hash, inputs_hash]
    return content_hash([*about, list(bounded_by)] if bounded_by else about)


async def _call(run: Run, desk: Desk, node_type: NodeType, parameters: Any, target: str | None) -> Outcome:
    """Carry out an attempt that keeps rate limits, and asks the breaker of its target if it has one."""
    target = None if target is None else writable(target[:LONGEST_TARGET])
    if run.rate_limit is not None and (bounded_by := run.bounded_by()):
        raise NodeFailure.permanent(refusal(f"the rate limit {run.rate_limit!r}", bounded_by))
    limits, about = desk.limits, (run.workspace, run.rate_limit, target)
    turn = await limits.turn(*about, run.reserved())
    while True:
        if isinstance(turn, RateLimitWait):
            return _suspended(run, turn)
        if turn is not None:
            node_type.prepare(desk.facilities)
            await _until(run, turn - limits.now())
        if target is not None and (held := await desk.breakers.admit(run.workspace, target, run.now)) is not None:
            return _held(run, target, held.until)
        # Asked last of all: a slot that is missed, since this process or the store was busy, is used no more.
        if turn is None or limits.now() <= turn + LATEST:
            break
        turn = await limits.turn(*about, None)
    if target is None:
        return await _carry_out(run, desk, node_type, parameters)
    return await _counted(run, desk, node_type, parameters, target)


async def _until(run: Run, left: int) -> None:
    """Wait for so many microseconds; the time of the attempt begins afterwards."""
    if left > 0:
        run.now, run.deadline = run.now + left, run.deadline + left
        await asyncio.sleep(left / SECOND)


async def _counted(run: Run, desk: Desk, node_type: NodeType, parameters: Any, target: str) -> Outcome:
    """Carry out an attempt and tell the breaker of its target; those that begin alike for so long share one."""
    outcome: ErrorType | None = ErrorType.TRANSIENT
    try:
        result = await _carry_out(run, desk, node_type, parameters)
        outcome = None
        return result
    except NodeFailure as raised:
        outcome = raised.error.type
        raise
    finally:
        await desk.breakers.record(run.workspace, target, outcome)


def _held(run: Run, target: str, until: int) -> Outcome:
    """Wait without using up the attempt, but not for ever."""
    if run.held_since is not None and run.now - run.held_since >= LONGEST_HOLD:
        return failure(run, RunError(ErrorType.CIRCUIT_OPEN, f"held for an hour by {target}"))
    return _suspended(run, BreakerWait(target, until))


def _suspended(run: Run, wait: Wait) -> Suspended:
    return Suspended(run.node, run.attempt, wait, run.item, run.inputs or None)


async def _carry_out(run: Run, desk: Desk, node_type: NodeType, parameters: Any) -> Outcome:
    context = NodeContext(
        execution=run.execution,
        workspace=run.workspace,
        node=run.node,
        make_key=run.idempotency_key,
        now=run.now,
        facilities=desk.facilities,
        attempt=run.attempt,
        item=run.item,
        deadline=run.deadline,
        get_bounds=run.bounded_by,
        get_files=partial(run.files, desk),
        get_credentials=run.credentials,
    )
    try:
        if node_type.only_shapes and node_type.credentials:
            await context.fetch_credentials()
        running = node_type.run(parameters, context)
        is_long = node_type.only_shapes and (run.inputs_at is not None or node_type.takes_long(parameters))
        if is_long and not node_type.waits(parameters):
            result = await desk.beside(run, partial(_at_once, running))
        else:
            result = await running
    except BaseException as raised:
        if not context.secrets or isinstance(raised, asyncio.CancelledError):
            raise
        # Not chained: what is below says what is masked here.
        raise context.masked_failure(raised) from None
    if context.secrets:
        result = await _masked(run, desk, context, result)
    if not isinstance(result, Output):
        return _suspended(run, _checked_wait(result))
    # One that fits goes into the log, a larger one is kept apart.
    try:
        value, large = recorded_briefly(result.value, INLINE_LIMIT)
    except Unfinished:
        value, large = await desk.beside(run, partial(recorded, result.value, INLINE_LIMIT))
    if result.ports != ():
        _check_ports(run, node_type, result.ports)
    if result.tokens is not None and not _is_count(result.tokens):
        raise NodeFailure.permanent("the tokens of an output must be how many there were")
    blob = None if large is None else await run.keep(large, desk)
    return Succeeded(run.node, run.attempt, value, result.ports, run.item, run.inputs or None, blob, result.tokens)


async def _accepted(run: Run, desk: Desk, node_type: NodeType) -> Any:
    """The parameters made of large inputs; these are kept first, if they are too large for the log."""
    if run.inputs_at is None:
        large = await desk.beside(run, partial(kept_apart, run.inputs, INLINE_LIMIT))
        run.inputs_at = None if large is None else await run.keep(large, desk)
    return await desk.beside(run, lambda: node_type.accept(copied(run.inputs)))


async def _masked(run: Run, desk: Desk, context: NodeContext, result: Any) -> Any:
    """What the node returned, without what was concealed."""
    try:
        plain_briefly(result.value if isinstance(result, Output) else None)
    except Unfinished:
        return await desk.beside(run, partial(context.masked_result, result))
    return context.masked_result(result)


def _at_once(running: Coroutine[Any, Any, Any]) -> Any:
    """What a node returns that waits for nothing."""
    try:
        running.send(None)
    except StopIteration as done:
        return done.value
    raise NodeFailure.permanent("a node type that only shapes values waits for something")


def _checked_wait(result: Any) -> Wait:
    """What a node returned instead of an output, if the log can tell it to the next reader."""
    if not isinstance(result, Wait):
        raise NodeFailure.permanent(f"the node type must return an Output or a wait, not {type(result).__name__}")
    try:
        result = writable_wait(result)
        check_output(result)
        wait: Wait = _waits.decode(msgspec.json.encode(result))
    except (NodeFailure, msgspec.ValidationError) as error:
        raise NodeFailure.permanent(f"the wait cannot be recorded: {error}") from error
    return wait


def _check_ports(run: Run, node_type: NodeType, ports: Any) -> None:
    if not _is_text(ports):
        raise NodeFailure.permanent("the ports of an output must be a tuple of names")
    if wrong := node_type.wrong_ports(run.inputs or {}, ports):
        raise NodeFailure.permanent(f"the output takes a port that the node does not have: {wrong}")


def _is_text(ports: Any) -> bool:
    return type(ports) is tuple and all(type(port) is str and port.isprintable() for port in ports)


def _is_count(tokens: Any) -> bool:
    return type(tokens) is int and 0 <= tokens <= LARGEST_INTEGER


def failure(run: Run, error: RunError) -> Failed:
    return Failed(run.node, run.attempt, _recordable(error), run.item, run.inputs or None)


def with_inputs_at(outcome: Outcome, blob: Blob | None) -> Outcome:
    """The same outcome of an attempt whose inputs, if they are too large for the log, lie there."""
    return outcome if blob is None else msgspec.structs.replace(outcome, inputs=None, inputs_blob=blob)


def overdue(limit: int) -> RunError:
    return RunError(ErrorType.TIMEOUT, f"the node did not end in its time limit of {format_duration(limit)}")


def with_jitter(report: Failed) -> Failed:
    """Chance comes from here: the core takes it as an argument."""
    about = (report.node, report.attempt, report.error, report.item)
    return Failed(*about, report.inputs, random.random(), report.inputs_blob)


def _recordable(error: Any) -> RunError:
    """The error a node told of, if the log can tell it too."""
    try:
        told = msgspec.convert(msgspec.to_builtins(error), RunError)
    except (msgspec.ValidationError, TypeError):
        return RunError(ErrorType.PERMANENT, "the node failed with an error that cannot be recorded")
    wish = told.retry_after if told.retry_after is not None and isfinite(told.retry_after) else None
    detail = told.detail and shortened(told.detail, LONGEST_DETAIL)
    tokens, status = (count if _is_count(count) else None for count in (told.tokens, told.status))
    body = told.body and shortened(told.body, LONGEST_BODY)
    return RunError(told.type, shortened(told.message, LONGEST_MESSAGE), detail, wish, tokens, status, body)
