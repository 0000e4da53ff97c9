-- written_rows: what the tables say about these executions ($1: a JSON list), and how many bytes their logs have, for
-- the worker that takes them up.
select execution.id, execution.state, execution.started_at, execution.finished_at, execution.error,
       live.owner, live.wake_at, live.has_slot, live.has_key, queue.state,
       coalesce((select sum(length(log.entry)) from log where log.execution = execution.id), 0),
       execution.workflow, execution.version
  from execution
  left join live on live.execution = execution.id
  left join queue on queue.id = execution.id and queue.state in ('PENDING', 'CLAIMED')
 where execution.id in ({{each_of_the_list}});

-- last_entry: the newest entry of a log.
select entry
  from log
 where execution = $1
 order by seq desc
 limit 1;

-- every_breaker: the health of every target.
select workspace, target, state, failure_count, success_count, window_start, last_failure, opened_at, next_retry,
       probe_until, probes, answered
  from breaker;
