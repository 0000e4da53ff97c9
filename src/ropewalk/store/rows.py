"""The rows a batch of `write` is made of, in the order of their statement's parameters.

This is the one place that fixes names and orders; plain tuples of the same order are as good. Ids, JSON and states are
text, times µs, flags 0 or 1. Changes name their row last.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class NewExecution(NamedTuple):
    """insert_execution"""

    id: str
    workspace: str
    workflow: str
    version: int
    state: str
    trigger: str
    parent: str | None
    parent_node: str | None
    parent_item: int | None
    parent_attempt: int | None
    concurrency_key: str | None
    accepted_at: int
    started_at: int | None
    trace_id: str | None


class ExecutionChange(NamedTuple):
    """set_execution"""

    state: str
    started_at: int | None
    finished_at: int | None
    error: str | None
    id: str


class LiveRow(NamedTuple):
    """insert_live, and as it is read: an execution that is not over; no owner means parked or queued"""

    execution: str
    workspace: str
    owner: str | None
    fence: int
    last_seq: int
    wake_at: int | None
    has_slot: int
    has_key: int
    concurrency_key: str | None
    priority: int


class LiveChange(NamedTuple):
    """update_live"""

    owner: str | None
    last_seq: int
    wake_at: int | None
    has_slot: int
    has_key: int
    execution: str


class Reopening(NamedTuple):
    """reopen_live"""

    owner: str | None
    last_seq: int
    wake_at: int | None
    has_slot: int
    has_key: int
    priority: int
    execution: str


class Counted(NamedTuple):
    """count_live"""

    last_seq: int
    execution: str


class Postponed(NamedTuple):
    """postpone_live"""

    wake_at: int
    execution: str


class LogEntry(NamedTuple):
    """insert_log; `seq` is the number of the entry's first event"""

    execution: str
    seq: int
    entry: bytes


class FirstRunEntry(NamedTuple):
    """insert_run; the rest follows from its having succeeded at the first attempt"""

    id: str
    execution: str
    node: str
    started_at: int
    finished_at: int


class RunEntry(NamedTuple):
    """upsert_run, and as it is read; leases are outside, see `offers.py`"""

    id: str
    execution: str
    node: str
    item: int | None
    attempt: int
    state: str
    worker: str | None
    retry_after: int | None
    started_at: int | None
    finished_at: int | None
    error_type: str | None
    error: str | None


class DeadLetterEntry(NamedTuple):
    """upsert_dead_letter; one that is resolved already stays as it is"""

    id: str
    workspace: str
    run: str
    execution: str
    workflow: str
    node: str
    item: int | None
    attempt: int
    failure_type: str
    error_type: str
    reason: str
    fingerprint: str
    inputs: str | None
    config: str | None
    created_at: int
    resolution: str
    resolved_at: int | None
    reviewed_by: str | None
    inputs_blob: str | None


class DeadLetterResolution(NamedTuple):
    """resolve_dead_letter; only one that is PENDING"""

    resolution: str
    resolved_at: int
    reviewed_by: str | None
    notes: str | None
    id: str


class NewQueueEntry(NamedTuple):
    """insert_queue; one that is there already goes back to the start"""

    id: str
    workspace: str
    state: str
    priority: int
    is_new: int
    enqueued_at: int
    not_before: int


class NewSignal(NamedTuple):
    """insert_inbox"""

    id: str
    execution: str
    signal: str
    sent_at: int


class Answer(NamedTuple):
    """answer_inbox"""

    answer: str
    id: str


class NewEventWait(NamedTuple):
    """insert_event_wait; item is -1 where there is none"""

    execution: str
    node: str
    item: int
    attempt: int
    workspace: str
    subject: str
    filter: str | None
    scope: str | None


class EventWaitKey(NamedTuple):
    """delete_event_wait"""

    execution: str
    node: str
    item: int


class NewOffer(NamedTuple):
    """insert_offer; item is -1 where there is none"""

    id: str
    execution: str
    workspace: str
    node: str
    item: int
    attempt: int
    pool: str
    work: str
    offered_at: int


class AuditEntry(NamedTuple):
    """insert_audit"""

    id: str
    at: int
    workspace: str
    actor: str
    verb: str
    object: str
    before: str | None
    after: str | None
    detail: str | None


class IdempotencyEntry(NamedTuple):
    """insert_idempotency"""

    workspace: str
    route: str
    key: str
    body_hash: str
    answer: str
    created_at: int


class BreakerEntry(NamedTuple):
    """upsert_breaker"""

    workspace: str
    target: str
    state: str
    failure_count: int
    success_count: int
    window_start: int | None
    last_failure: int | None
    opened_at: int | None
    next_retry: int | None
    probe_until: int | None
    probes: int
    answered: int


class BlobEntry(NamedTuple):
    """insert_blob"""

    hash: str
    size: int
    created_at: int


class BlobReference(NamedTuple):
    """insert_blob_reference"""

    hash: str
    execution: str


class BlobContent(NamedTuple):
    """insert_blob_content"""

    hash: str
    data: bytes


class CachedResult(NamedTuple):
    """upsert_cached_result"""

    workspace: str
    key: str
    output: str | None
    blob: str | None
    ports: str | None
    expires_at: int


class Suspect(NamedTuple):
    """upsert_suspicion; `on_trial` is 1 if it was taken up alone"""

    execution: str
    deaths: int
    on_trial: int


class ById(NamedTuple):
    """delete_live, delete_queue, delete_inbox, delete_offers, delete_suspicion"""

    id: str


ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "insert_execution": NewExecution._fields,
    "set_execution": ExecutionChange._fields,
    "insert_live": LiveRow._fields,
    "update_live": LiveChange._fields,
    "reopen_live": Reopening._fields,
    "count_live": Counted._fields,
    "postpone_live": Postponed._fields,
    "delete_live": ById._fields,
    "insert_log": LogEntry._fields,
    "insert_run": FirstRunEntry._fields,
    "upsert_run": RunEntry._fields,
    "upsert_dead_letter": DeadLetterEntry._fields,
    "resolve_dead_letter": DeadLetterResolution._fields,
    "insert_queue": NewQueueEntry._fields,
    "delete_queue": ById._fields,
    "insert_inbox": NewSignal._fields,
    "delete_inbox": ById._fields,
    "answer_inbox": Answer._fields,
    "insert_event_wait": NewEventWait._fields,
    "delete_event_wait": EventWaitKey._fields,
    "insert_offer": NewOffer._fields,
    "delete_offers": ById._fields,
    "upsert_suspicion": Suspect._fields,
    "delete_suspicion": ById._fields,
    "insert_audit": AuditEntry._fields,
    "insert_idempotency": IdempotencyEntry._fields,
    "upsert_breaker": BreakerEntry._fields,
    "insert_blob": BlobEntry._fields,
    "insert_blob_content": BlobContent._fields,
    "insert_blob_reference": BlobReference._fields,
    "upsert_cached_result": CachedResult._fields,
}
"""The statements of the hot path and the columns of their rows."""
