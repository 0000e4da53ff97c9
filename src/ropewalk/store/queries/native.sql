-- written_rows: what the tables say about an execution, for whoever takes it up.
select execution.state, execution.started_at, execution.finished_at, execution.error,
       live.owner, live.last_seq, live.wake_at, live.has_slot, live.has_key, queue.state
  from execution
  left join live on live.execution = execution.id
  left join queue on queue.id = execution.id and queue.state in ('PENDING', 'CLAIMED')
 where execution.id = $1;

-- last_entry: the newest entry of a log.
select entry
  from log
 where execution = $1
 order by seq desc
 limit 1;

-- every_breaker: the health of every target.
select workspace, target, state, failure_count, success_count, window_start, last_failure, opened_at, next_retry,
       probe_until
  from breaker;
