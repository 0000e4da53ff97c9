-- upsert_run: one attempt as it is now. Leases are left as they are.
insert into run (id, execution, node, item, attempt, state, worker, retry_after, started_at, finished_at, error_type,
                 error)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (id) do update
   set state = excluded.state, worker = excluded.worker, retry_after = excluded.retry_after,
       started_at = excluded.started_at, finished_at = excluded.finished_at, error_type = excluded.error_type,
       error = excluded.error;

-- get_run: one run.
select id, execution, node, item, attempt, state, worker, leased_by, lease_until, fence, heartbeat_at, retry_after,
       started_at, finished_at, error_type, error
  from run
 where id = $1;

-- list_runs: the runs of an execution in the order they came to be, after a cursor. Uses run_by_execution.
select id, execution, node, item, attempt, state, worker, leased_by, lease_until, fence, heartbeat_at, retry_after,
       started_at, finished_at, error_type, error
  from run
 where execution = $1 and id > $2
   and (cast($3 as text) is null or node = $3)
   and (cast($4 as text) is null or state = $4)
 order by id
 limit $5;

-- lease_runs: hand a runner the oldest due runs, skipping rows another runner is taking. Uses run_by_lease.
-- A materialized CTE, so that the planner cannot run the limited select more than once.
with due as materialized (
    select id as due_run from run
     where state = 'PENDING' and retry_after <= $1
     order by retry_after
     limit $2 {{skip_locked}})
update run
   set state = 'LEASED', leased_by = $3, lease_until = $4, heartbeat_at = $1, fence = fence + 1
  from due
 where id = due_run
returning id, execution, node, item, attempt, state, worker, leased_by, lease_until, fence, heartbeat_at, retry_after,
          started_at, finished_at, error_type, error;

-- extend_lease: the runner is alive and keeps the run; nothing for an old fence or after the end of the lease.
update run
   set heartbeat_at = $1, lease_until = case when $2 > lease_until then $2 else lease_until end
 where id = $3 and leased_by = $4 and fence = $5 and state in ('LEASED', 'RUNNING') and lease_until >= $1;

-- expired_leases: runs whose runner has gone silent, longest first. Uses run_by_expiry.
select id, execution, node, item, attempt, state, worker, leased_by, lease_until, fence, heartbeat_at, retry_after,
       started_at, finished_at, error_type, error
  from run
 where state in ('LEASED', 'RUNNING') and lease_until is not null and lease_until < $1
 order by lease_until
 limit $2 {{skip_locked}};
