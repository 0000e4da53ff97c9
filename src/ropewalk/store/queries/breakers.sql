-- upsert_breaker: the health of a target as it is now.
insert into breaker (workspace, target, state, failure_count, success_count, window_start, last_failure, opened_at,
                     next_retry, probe_until, probes, answered)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (workspace, target) do update
   set state = excluded.state, failure_count = excluded.failure_count, success_count = excluded.success_count,
       window_start = excluded.window_start, last_failure = excluded.last_failure, opened_at = excluded.opened_at,
       next_retry = excluded.next_retry, probe_until = excluded.probe_until, probes = excluded.probes,
       answered = excluded.answered;

-- ensure_breaker: there is a row for the target, though it was never called.
insert into breaker (workspace, target, state, failure_count, success_count)
values ($1, $2, 'CLOSED', 0, 0)
on conflict (workspace, target) do nothing;

-- get_breaker: the health of one target.
select state, failure_count, success_count, window_start, last_failure, opened_at, next_retry, probe_until,
       probes, answered
  from breaker
 where workspace = $1 and target = $2;

-- lock_breaker: the same, kept from others until the end of the transaction.
select state, failure_count, success_count, window_start, last_failure, opened_at, next_retry, probe_until,
       probes, answered
  from breaker
 where workspace = $1 and target = $2
   {{for_update}};

-- list_breakers: the targets of a workspace, after a cursor.
select target, state, failure_count, success_count, window_start, last_failure, opened_at, next_retry, probe_until,
       probes, answered
  from breaker
 where workspace = $1 and target > $2
 order by target
 limit $3;

-- count_calls: so many more calls to a target have ended in this span of time, and so many of them failed.
insert into breaker_call (workspace, target, span, calls, failures)
values ($1, $2, $3, $4, $5)
on conflict (workspace, target, span) do update
   set calls = breaker_call.calls + excluded.calls, failures = breaker_call.failures + excluded.failures;

-- calls_counted: the calls to a target in a span of time and in those after it.
select coalesce(sum(calls), 0), coalesce(sum(failures), 0)
  from breaker_call
 where workspace = $1 and target = $2 and span >= $3;

-- forget_calls: nothing was counted of this target.
delete from breaker_call
 where workspace = $1 and target = $2;

-- forget_old_calls: what was counted before is not needed any more. By breaker_call_by_span.
delete from breaker_call
 where span < $1;
