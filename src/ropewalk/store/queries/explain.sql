-- queue_place: how many go before an entry that waits, and how many wait, among the first of its workspace.
-- Only so many are counted: a queue may be long, and a place beyond that tells a reader nothing. Uses queue_by_claim.
select count(*) filter (where is_new < $2
                           or (is_new = $2 and (priority > $3
                               or (priority = $3 and (enqueued_at < $4
                                   or (enqueued_at = $4 and id < $5)))))),
       count(*)
  from (select is_new, priority, enqueued_at, id
          from queue
         where workspace = $1 and state = 'PENDING'
         order by is_new, priority desc, enqueued_at, id
         limit $6) as first;

-- slots_held: the executions with the slots of a workspace, those accepted first before the others. Uses live_by_slot.
select execution, owner
  from live
 where workspace = $1 and has_slot = 1
 order by execution
 limit $2;

-- key_held: the executions with a concurrency key, an ancestor before its descendants. Uses live_by_key.
select execution, owner
  from live
 where workspace = $1 and concurrency_key = $2 and has_key > 0
 order by has_key;

-- shared_runs: attempts under way that others than the owner of their execution carry out, or may. Uses offer_by_execution.
select node, nullif(item, -1), attempt, case when leased_by is null then 'PENDING' else 'LEASED' end, leased_by,
       lease_until
  from offer
 where execution = $1
 order by id
 limit $2;

-- unread_signals: what an execution was told by others and has not taken in, in order. Uses inbox_by_execution.
select signal, sent_at
  from inbox
 where execution = $1 and answer is null
 order by id
 limit $2;
