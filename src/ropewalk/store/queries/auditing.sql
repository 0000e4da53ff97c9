-- audited_ids: every execution there is, newest first, before a cursor.
select id
  from execution
 where id < $1
 order by id desc
 limit $2;

-- audited_rows: what the tables say about one execution at one moment: its place among the living and in the queue, how
-- much it has yet to be told, and how many of its runs are offered to others. Uses inbox_by_execution.
select execution.id, execution.workspace, execution.workflow, execution.version, execution.state, execution.trigger,
       execution.parent, execution.parent_node, execution.parent_item, execution.parent_attempt,
       execution.concurrency_key, execution.accepted_at, execution.started_at, execution.finished_at, execution.error,
       execution.trace_id,
       live.execution, live.workspace, live.owner, live.fence, live.last_seq, live.wake_at, live.has_slot,
       live.has_key, live.concurrency_key, live.priority,
       queue.id, queue.workspace, queue.state, queue.priority, queue.is_new, queue.enqueued_at, queue.not_before,
       queue.attempts, queue.claimed_by, queue.claimed_at, queue.error,
       (select count(*) from inbox where inbox.execution = execution.id and inbox.answer is null),
       (select count(*) from offer where offer.execution = execution.id)
  from execution
  left join live on live.execution = execution.id
  left join queue on queue.id = execution.id
 where execution.id = $1;

-- audited_event_waits: what events one execution waits for, and in which words.
select node, item, attempt, workspace, subject, filter, scope
  from event_wait
 where execution = $1
 order by node, item;

-- audited_blob: the size of a blob, and how often it is said that the log of an execution names it; what is older than
-- such sayings is named by no execution in particular.
select size, (select count(*) from blob_reference
               where hash = $1 and execution in ($2, '') and until is null)
  from blob
 where hash = $1;

-- known_executions: which executions there are after the first id and up to the second.
select id
  from execution
 where id > $1 and id <= $2
 order by id;

-- executions_in_log: whose log there is, after a cursor.
select distinct execution
  from log
 where execution > $1
 order by execution
 limit $2;

-- executions_in_run: whose runs there are, after a cursor. Uses run_by_execution.
select distinct execution
  from run
 where execution > $1
 order by execution
 limit $2;

-- executions_in_dead_letter: whose dead letters there are, after a cursor. Uses dead_letter_by_execution.
select distinct execution
  from dead_letter
 where execution > $1
 order by execution
 limit $2;

-- executions_in_live: the executions under way, after a cursor.
select execution
  from live
 where execution > $1
 order by execution
 limit $2;

-- executions_in_queue: the executions in the queue, after a cursor.
select id
  from queue
 where id > $1
 order by id
 limit $2;

-- executions_in_event_wait: the executions that wait for events, after a cursor.
select distinct execution
  from event_wait
 where execution > $1
 order by execution
 limit $2;

-- executions_in_offer: whose runs are offered to others, after a cursor. Uses offer_by_execution.
select distinct execution
  from offer
 where execution > $1
 order by execution
 limit $2;

-- executions_in_inbox: the executions that have yet to be told something, after a cursor. Uses inbox_by_execution.
select distinct execution
  from inbox
 where execution > $1 and answer is null
 order by execution
 limit $2;

-- audited_answers: what idempotency keys were answered with, after a cursor.
select workspace, route, key, body_hash, answer, created_at
  from idempotency
 where (workspace, route, key) > ($1, $2, $3)
 order by workspace, route, key
 limit $4;

-- unnoted_starts: executions before a cursor, newest first, that were accepted since then and whose start the audit log
-- does not have exactly once; and how often it has it. Reads the whole audit log.
select execution.id, coalesce(noted.times, 0)
  from execution
  left join (select object, count(*) as times from audit where verb = 'start' group by object) as noted
    on noted.object = execution.id
 where execution.id < $1 and execution.accepted_at >= $2 and (noted.times is null or noted.times <> 1)
 order by execution.id desc
 limit $3;

-- noted_verbs: how often these verbs ($1: a JSON list) were asked of what. Reads the whole audit log.
select object, verb, count(*)
  from audit
 where verb in ({{each_of_the_list}})
 group by object, verb;

-- strange_owners: executions whose owner does not exist.
select execution, owner
  from live
 where owner is not null and not exists (select 1 from worker where worker.id = live.owner)
 order by execution
 limit $1;
