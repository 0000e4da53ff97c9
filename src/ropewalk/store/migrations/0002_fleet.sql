-- What a fleet on one shared store needs.

-- commits: the number of the worker's last commit, by which one whose answer was lost is found again.
-- has_lock: 1 while the database itself watches over the worker, by a lock of its session.
alter table worker add column commits bigint not null default 0;
alter table worker add column has_lock bigint not null default 0;

-- What was asked of an execution is answered where it was asked.
alter table inbox add column sent_by text;
alter table inbox add column wants_answer bigint not null default 0;
alter table inbox add column answer text;

-- Where there are no files that every worker can read.
create table blob_content (
    hash text primary key,
    data bytea not null
);

-- Runs that others than the execution's owner may carry out: small, hot, gone when they are reported.
create table offer (
    id text primary key,
    execution text not null,
    workspace text not null,
    node text not null,
    item bigint not null,
    attempt bigint not null,
    pool text not null,
    work text not null,
    offered_at bigint not null,
    leased_by text,
    lease_until bigint,
    fence bigint not null,
    heartbeat_at bigint,
    is_stopped bigint not null default 0
);
create index offer_by_pool on offer (pool, offered_at, id) where leased_by is null;
create index offer_by_expiry on offer (lease_until) where leased_by is not null;
create index offer_by_execution on offer (execution);

-- What a worker owns is walked in order, page by page.
drop index live_by_owner;
create index live_by_owner on live (owner, execution) where owner is not null;

-- Leases are the offers'.
drop index run_by_lease;
drop index run_by_expiry;
alter table run drop column leased_by;
alter table run drop column lease_until;
alter table run drop column fence;
alter table run drop column heartbeat_at;
