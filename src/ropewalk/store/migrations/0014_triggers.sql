-- What starts executions besides a call, and what became of every time it should have.

create table workflow_trigger (
    id text primary key,
    workspace text not null,
    workflow text not null references workflow (id),
    name text not null,
    kind text not null,
    version bigint,
    settings text not null,
    is_declared bigint not null,
    is_enabled bigint not null,
    bounded_by text,
    created_at bigint not null,
    created_by text not null,
    changed_at bigint not null,
    removed_at bigint,
    cursor_at bigint,
    next_at bigint,
    claimed_until bigint not null default 0,
    last_execution text,
    token text,
    unique (workflow, name)
);
create index workflow_trigger_by_time on workflow_trigger (next_at) where next_at is not null;
create index workflow_trigger_by_workspace on workflow_trigger (workspace, id);
create unique index workflow_trigger_by_token on workflow_trigger (token) where token is not null;

create table trigger_fire (
    trigger_id text not null,
    key text not null,
    workspace text not null,
    at bigint not null,
    due_at bigint,
    execution text,
    reason text,
    detail text,
    primary key (trigger_id, key)
);
create index trigger_fire_by_time on trigger_fire (trigger_id, at, key);
create index trigger_fire_by_age on trigger_fire (at);
