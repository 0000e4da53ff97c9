-- slot_holders: the executions that were left with a slot. Uses live_by_slot.
select execution
  from live
 where has_slot = 1;

-- key_holders: the parked executions that keep their key. Uses live_by_key.
select execution
  from live
 where has_key = 1 and has_slot = 0;

-- written_rows: what the tables say about an execution, for whoever takes it up.
select execution.state, execution.started_at, execution.finished_at, execution.error,
       live.owner, live.last_seq, live.wake_at, live.has_slot, live.has_key, queue.id
  from execution
  left join live on live.execution = execution.id
  left join queue on queue.id = execution.id and queue.state = 'PENDING'
 where execution.id = $1;

-- last_entry: the newest entry of a log.
select entry
  from log
 where execution = $1
 order by seq desc
 limit 1;

-- queued_workspaces: the workspaces in which something waits for a slot.
select distinct workspace
  from queue
 where state = 'PENDING'
 order by workspace;

-- queued_executions: what waits for a slot in a workspace, in the order it is to start. Uses queue_by_claim.
-- Those behind a held key are left out, so that they do not hide the others; but for children, which may have the key
-- of an ancestor: whoever claims knows that.
select queue.id
  from queue
 inner join live on live.execution = queue.id
 inner join execution on execution.id = queue.id
 where queue.workspace = $1 and queue.state = 'PENDING' and queue.not_before <= $2
   and (live.concurrency_key is null or live.has_key = 1 or execution.parent is not null
        or not exists (select 1 from live as holder
                        where holder.workspace = $1 and holder.concurrency_key = live.concurrency_key
                          and holder.has_key = 1))
 order by queue.is_new, queue.priority desc, queue.enqueued_at, queue.id
 limit $3;

-- due_executions: parked executions whose time has come, the earliest first. Uses live_by_wake.
select execution
  from live
 where owner is null and wake_at is not null and wake_at <= $1
 order by wake_at
 limit $2;

-- waiting_inbox: everything that was written down and not yet told, in order.
select id, execution, signal
  from inbox
 order by id;

-- every_breaker: the health of every target.
select workspace, target, state, failure_count, success_count, window_start, last_failure, opened_at, next_retry,
       probe_until
  from breaker;
