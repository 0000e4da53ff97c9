-- insert_run: a node that succeeded at its first attempt, of which there was no row before; most runs are such.
insert into run (id, execution, node, item, attempt, state, worker, retry_after, started_at, finished_at, error_type,
                 error)
values ($1, $2, $3, null, 1, 'SUCCESS', null, null, $4, $5, null, null);

-- upsert_run: one attempt as it is now.
insert into run (id, execution, node, item, attempt, state, worker, retry_after, started_at, finished_at, error_type,
                 error)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (id) do update
   set state = excluded.state, worker = excluded.worker, retry_after = excluded.retry_after,
       started_at = excluded.started_at, finished_at = excluded.finished_at, error_type = excluded.error_type,
       error = excluded.error;

-- get_run: one run.
select id, execution, node, item, attempt, state, worker, retry_after, started_at, finished_at, error_type,
       error
  from run
 where id = $1;

-- list_runs: the runs of an execution in the order they came to be, after a cursor. Uses run_by_execution.
select id, execution, node, item, attempt, state, worker, retry_after, started_at, finished_at, error_type,
       error
  from run
 where execution = $1 and id > $2
   and (cast($3 as text) is null or node = $3)
   and (cast($4 as text) is null or state = $4)
 order by id
 limit $5;

-- offered_run: whose attempt an offer is.
select execution, node, item, attempt
  from offer
 where id = $1;

-- run_lease: the holder of an attempt that others than the owner of its execution may carry out. Uses offer_by_execution.
select leased_by, lease_until, fence, heartbeat_at, pool, offered_at
  from offer
 where execution = $1 and node = $2 and item = $3 and attempt = $4;
