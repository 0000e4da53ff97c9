-- The whole schema, for readers; the database itself is made by migrations/, and a test holds the two equal.
-- Times are µs since the epoch, JSON is text, log entries and blobs are bytes, ids are UUIDv7 text.

create table migration (
    number bigint primary key,
    name text not null,
    checksum text not null,
    applied_at bigint not null
);

create table workspace (
    id text primary key,
    plan text not null,
    slots bigint,                       -- the limit in force: the plan's or an override; null: none
    created_at bigint not null,
    rate_limits text                    -- JSON: its own rate limits by name; null: none
);

create table workflow (
    id text primary key,
    workspace text not null references workspace (id),
    name text not null,
    published bigint,                   -- version; null: nothing to start
    archived_at bigint,
    created_at bigint not null,
    unique (workspace, name)
);

create table workflow_version (
    workflow text not null references workflow (id),
    version bigint not null,
    hash text not null,
    document text not null,
    created_at bigint not null,
    created_by text not null,
    bounded_by text,                    -- who saved it, if that actor reaches less than the whole workspace
    primary key (workflow, version)
);

-- History: one row per execution for life; what it was given and gave is in its log. No index on anything that changes while it runs, nor on whether it ended well: a failure is found by its error, which alone has one.
create table execution (
    id text primary key,
    workspace text not null,
    workflow text not null,
    version bigint not null,
    state text not null,
    trigger text not null,
    parent text,
    parent_node text,                   -- where the child's end is reported: node, item, attempt
    parent_item bigint,
    parent_attempt bigint,
    concurrency_key text,
    accepted_at bigint not null,
    started_at bigint,
    finished_at bigint,
    error text,                         -- of FAILED and TIMEOUT, and of no other
    trace_id text                       -- null: of an earlier version; its log tells it
);
create index execution_by_workspace on execution (workspace, id);
create index execution_by_workflow on execution (workflow, id);
create index execution_by_error on execution (workspace, id) where error is not null;
create index execution_by_parent on execution (parent) where parent is not null;

-- What is not over: small, hot, deleted at the end.
create table live (
    execution text primary key,
    workspace text not null,
    owner text,                         -- worker; null: parked or queued
    fence bigint not null,
    last_seq bigint not null,
    wake_at bigint,
    has_slot bigint not null,
    has_key bigint not null,            -- from the first claim to the end: its place among those that hold the key, an ancestor before its descendants; 0: it holds none
    concurrency_key text,
    priority bigint not null
);
create index live_by_wake on live (wake_at) where wake_at is not null and owner is null;
create index live_by_owner on live (owner, execution) where owner is not null;
create index live_by_slot on live (workspace) where has_slot = 1;
create unique index live_by_key on live (workspace, concurrency_key, has_key) where has_key > 0;

-- What was under way when its worker died, until its next commit; what is set aside for that, until a person says so.
create table suspicion (
    execution text primary key,
    deaths bigint not null,
    on_trial bigint not null,           -- 1: it was taken up alone
    set_aside_at bigint                 -- null: it is not set aside
);

-- The truth: what each append added, in a versioned envelope; seq is the number of its first event.
create table log (
    execution text not null,
    seq bigint not null,
    entry bytea not null,
    primary key (execution, seq)
);

create table queue (
    id text primary key,                -- the execution's
    workspace text not null,
    state text not null,
    priority bigint not null,
    is_new bigint not null,             -- 0: woken, resumed, reopened, child; these go first
    enqueued_at bigint not null,
    not_before bigint not null,
    attempts bigint not null,
    claimed_by text,
    claimed_at bigint,
    error text
);
create index queue_by_claim on queue (workspace, is_new, priority desc, enqueued_at, id) where state = 'PENDING';

-- Written once, at the end of the attempt; earlier only while another process must see it.
create table run (
    id text primary key,
    execution text not null,
    node text not null,
    item bigint,
    attempt bigint not null,
    state text not null,
    worker text,
    retry_after bigint,
    started_at bigint,
    finished_at bigint,
    error_type text,
    error text,
    trace_id text                       -- written by earlier versions; a run's trace is its execution's
);
create index run_by_execution on run (execution, id);

create table dead_letter (
    id text primary key,
    workspace text not null,
    run text not null unique,
    execution text not null,
    workflow text not null,
    node text not null,
    item bigint,
    attempt bigint not null,
    failure_type text not null,
    error_type text not null,
    reason text not null,
    fingerprint text not null,
    inputs text,
    config text,
    created_at bigint not null,
    resolution text not null,
    resolved_at bigint,
    reviewed_by text,
    notes text,
    inputs_blob text                    -- where inputs lie that are too large for the log, as JSON; inputs is null then
);
create index dead_letter_by_workspace on dead_letter (workspace, resolution, id);
create index dead_letter_by_fingerprint on dead_letter (workspace, resolution, fingerprint, id);
create index dead_letter_by_execution on dead_letter (execution);
create index dead_letter_by_resolved on dead_letter (resolved_at) where resolution in ('REQUEUED', 'FIXED');

-- Signals from elsewhere, consumed in the transaction of the events they cause.
create table inbox (
    id text primary key,
    execution text not null,
    signal text not null,
    sent_at bigint not null,
    sent_by text,
    wants_answer bigint not null default 0,
    answer text                         -- what came of it, for the worker that asked
);
create index inbox_by_execution on inbox (execution, id);

-- Who waits for which events; gone with the commit that ends the wait.
create table event_wait (
    execution text not null,
    node text not null,
    item bigint not null,               -- -1: the node is no map
    attempt bigint not null,
    workspace text not null,
    subject text not null,
    filter text,
    scope text,                         -- the values the filter reads besides the event, as JSON; null: none
    primary key (execution, node, item)
);
create index event_wait_by_workspace on event_wait (workspace);

create table breaker (
    workspace text not null,
    target text not null,
    state text not null,
    failure_count bigint not null,
    success_count bigint not null,
    window_start bigint,
    last_failure bigint,
    opened_at bigint,
    next_retry bigint,
    probe_until bigint,
    probes bigint not null default 0,   -- that are out
    answered bigint not null default 0, -- probes since it is half-open
    primary key (workspace, target)
);

-- The calls of all workers to one target, by the span of time they ended in; what is older than a window is removed.
create table breaker_call (
    workspace text not null,
    target text not null,
    span bigint not null,               -- when it began
    calls bigint not null,
    failures bigint not null,
    primary key (workspace, target, span)
);
create index breaker_call_by_span on breaker_call (span);

-- The slots that were handed out for each rate limit, the last ones that still count.
create table rate_limit (
    workspace text not null,            -- '': it is in the configuration, and one for all workspaces
    name text not null,
    most bigint not null,               -- the limit itself, as it was when a slot was last handed out
    per bigint not null,
    slots text not null,                -- JSON: when the last of a run of neighbours is, and how many they are
    primary key (workspace, name)
);

create table worker (
    id text primary key,
    epoch bigint not null,
    host text not null,
    pid bigint not null,
    version text not null,
    pool text not null,
    slots bigint not null,
    load bigint not null,
    started_at bigint not null,
    heartbeat_at bigint not null,       -- 0: it has left
    commits bigint not null default 0,  -- the number of its last commit, by which one whose answer was lost is found
    has_lock bigint not null default 0  -- 1: the database itself watches over it, by a lock of its session
);

create table blob (
    hash text primary key,
    size bigint not null,
    created_at bigint not null          -- when it was put last
);

-- Where there are no files that every worker can read.
create table blob_content (
    hash text primary key,
    data bytea not null
);

-- The same of what came as a stream, in parts of one size; under a name that is no hash until all of them are there.
create table blob_part (
    hash text not null,
    part bigint not null,
    data bytea not null,
    primary key (hash, part)
);

-- Which workspaces have brought the content of a file: no other reads it by its hash.
create table file_owner (
    hash text not null,
    workspace text not null,
    primary key (hash, workspace)
);

-- Which logs name which blobs, so that a blob goes when the last of them has.
create table blob_reference (
    hash text not null,
    execution text not null,            -- '': older than this table, kept for good; 'in <hash>': a blob that names it
    until bigint,                       -- null: as long as the log is there; else it counts until then
    primary key (hash, execution)
);
create index blob_reference_by_execution on blob_reference (execution);
create index blob_reference_by_end on blob_reference (until) where until is not null;

create table cached_result (
    workspace text not null,
    key text not null,
    output text,
    blob text,
    ports text,
    expires_at bigint not null,
    primary key (workspace, key)
);
create index cached_result_by_expiry on cached_result (expires_at);

-- What nodes keep by key beyond an execution (kv.*, dedupe), and what their runs have done already.
create table kept_value (
    workspace text not null,
    space text not null,                -- kv, work, or the memory of a dedupe
    key text not null,
    value text not null,                -- JSON; in a memory the work that brought the item
    version bigint not null,            -- when it was written, and more than before
    expires_at bigint,                  -- null: never
    primary key (workspace, space, key)
);
create index kept_value_by_expiry on kept_value (expires_at) where expires_at is not null;

create table idempotency (
    workspace text not null,
    route text not null,
    key text not null,
    body_hash text not null,
    answer text not null,
    created_at bigint not null,
    primary key (workspace, route, key)
);
create index idempotency_by_age on idempotency (created_at);

create table audit (
    id text primary key,
    at bigint not null,
    workspace text not null,
    actor text not null,
    verb text not null,
    object text not null,
    before text,
    after text,
    detail text
);
create index audit_by_workspace on audit (workspace, id);

-- Runs that others than the execution's owner may carry out: small, hot, gone when they are reported.
create table offer (
    id text primary key,
    execution text not null,
    workspace text not null,
    node text not null,
    item bigint not null,               -- -1: the node is no map
    attempt bigint not null,
    pool text not null,                 -- who may take it
    work text not null,                 -- all a runner needs to know, JSON
    offered_at bigint not null,
    leased_by text,
    lease_until bigint,
    fence bigint not null,              -- raised with each lease; a report under an old one is refused
    heartbeat_at bigint,
    is_stopped bigint not null default 0
);
create index offer_by_pool on offer (pool, offered_at, id) where leased_by is null;
create index offer_by_expiry on offer (lease_until) where leased_by is not null;
create index offer_by_execution on offer (execution);

-- What one worker of a fleet does for all: whose turn it is, and until when.
create table singleton (
    name text primary key,
    holder text not null,
    until bigint not null
);

-- Executions that are about to be reopened, and not to be removed meanwhile.
create table retention_hold (
    execution text primary key,
    until bigint not null
);

-- Who may come in by a key; what it opens is its role in its workspace, less what its scopes leave out.
create table api_key (
    id text primary key,
    workspace text not null,
    name text not null,
    hash text not null,                 -- SHA-256 of the secret
    role text not null,
    scopes text,                        -- JSON list of rights; null: all of the role
    pools text,                         -- JSON list of the pools it may lease from; null: any
    is_root bigint not null,            -- 1: may do everything in every workspace
    created_at bigint not null,
    created_by text not null,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint
);
create index api_key_by_workspace on api_key (workspace, id);

create table member (
    workspace text not null,
    subject text not null,              -- user:… as an identity provider names them, or key:…
    role text not null,
    created_at bigint not null,
    created_by text not null,
    primary key (workspace, subject)
);
create index member_by_subject on member (subject, workspace);

-- Workflows that are shared with a subject that has no role, or a lesser one, in the workspace.
create table acl (
    workspace text not null,
    workflow text not null,
    subject text not null,
    role text not null,
    created_at bigint not null,
    created_by text not null,
    primary key (workspace, workflow, subject)
);
create index acl_by_subject on acl (subject, workspace, workflow);

create table session (
    hash text primary key,
    actor text not null,                -- JSON
    csrf_hash text not null,
    created_at bigint not null,
    expires_at bigint not null
);
create index session_by_expiry on session (expires_at);

-- What starts executions besides a call.
create table workflow_trigger (
    id text primary key,
    workspace text not null,
    workflow text not null references workflow (id),
    name text not null,
    kind text not null,                 -- CRON, EVENT, WEBHOOK, QUEUE
    version bigint,                     -- the version it starts; null: the published one
    settings text not null,             -- JSON, as its author wrote it
    is_declared bigint not null,        -- 1: it is part of the definition, and goes with it
    is_enabled bigint not null,
    bounded_by text,                    -- who made it, if that actor reaches less than the whole workspace
    created_at bigint not null,
    created_by text not null,
    changed_at bigint not null,         -- when its settings came to be what they are
    removed_at bigint,                  -- null: it is there
    cursor_at bigint,                   -- the last due time that was decided upon; null: none was
    next_at bigint,                     -- when a server has to look at it; null: never by the clock
    claimed_until bigint not null default 0, -- until then a server is at it
    last_execution text,                -- what it started last
    token text,                         -- the secret part of a webhook's address
    unique (workflow, name)
);
create index workflow_trigger_by_time on workflow_trigger (next_at) where next_at is not null;
create index workflow_trigger_by_workspace on workflow_trigger (workspace, id);
create unique index workflow_trigger_by_token on workflow_trigger (token) where token is not null;

-- One row for each due time, delivery or message of a trigger: the execution it started, or why there is none.
create table trigger_fire (
    trigger_id text not null,
    key text not null,
    workspace text not null,
    at bigint not null,                 -- when it was decided upon
    due_at bigint,
    execution text,                     -- null: it was skipped
    reason text,                        -- why it was skipped; null: it was not
    detail text,
    primary key (trigger_id, key)
);
create index trigger_fire_by_time on trigger_fire (trigger_id, at, key);
create index trigger_fire_by_age on trigger_fire (at);

-- What the servers of one store agree on. The key they sign with is elsewhere.
create table secret (
    name text primary key,
    value text not null
);

-- The key that the secrets of a workspace are encrypted with, wrapped by the master key, which is in no table.
create table data_key (
    workspace text primary key,
    wrapped bytea not null,
    master text not null,               -- the fingerprint of the master key that wraps it
    created_at bigint not null
);

create table credential (
    id text primary key,
    workspace text not null,
    name text not null,
    type text not null,
    plain text not null,                -- JSON: the fields that are no secrets, and the references that stand for secrets
    hosts text not null,                -- JSON list of the hosts it is bound to; empty: any
    revision bigint not null,           -- raised with each change; its secrets are sealed for one revision
    created_at bigint not null,
    created_by text not null,
    updated_at bigint not null,
    updated_by text not null,
    last_used_at bigint,                -- to the minute
    token bytea,                        -- the access token that all workers share, sealed; null: none
    token_until bigint,                 -- null: until a counterpart refuses it
    token_serial bigint not null default 0,    -- raised with each new token
    renewed_by text,                    -- the worker that renews the token now
    renewed_until bigint,
    unique (workspace, name)
);

-- The secret fields, each sealed for its place.
create table credential_field (
    credential text not null,
    field text not null,
    sealed bytea not null,
    primary key (credential, field)
);

-- Who may use a credential without the right to use those of the whole workspace.
create table credential_acl (
    workspace text not null,
    credential text not null,
    subject text not null,
    created_at bigint not null,
    created_by text not null,
    primary key (workspace, credential, subject)
);
