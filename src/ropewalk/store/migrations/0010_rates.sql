-- Breakers open by the rate of failures: how many probes are out and were answered, and the calls of all workers by
-- target, counted in spans of time.

alter table breaker add column probes bigint not null default 0;
alter table breaker add column answered bigint not null default 0;
create table breaker_call (
    workspace text not null,
    target text not null,
    span bigint not null,
    calls bigint not null,
    failures bigint not null,
    primary key (workspace, target, span)
);
create index breaker_call_by_span on breaker_call (span);

-- Rate limits: those of a workspace, and the slots that were handed out for each.

alter table workspace add column rate_limits text;
create table rate_limit (
    workspace text not null,
    name text not null,
    most bigint not null,
    per bigint not null,
    slots text not null,
    primary key (workspace, name)
);
