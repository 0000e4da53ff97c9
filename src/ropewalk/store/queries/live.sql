-- insert_live: an execution that is not over.
insert into live (execution, workspace, owner, fence, last_seq, wake_at, has_slot, has_key, concurrency_key, priority)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- update_live: who has it, how far it is, when to wake it, what it holds.
update live
   set owner = $1, last_seq = $2, wake_at = $3, has_slot = $4, has_key = $5
 where execution = $6;

-- delete_live: the execution is over; slot and key are free with it.
delete from live
 where execution = $1;

-- get_live: one execution that is not over.
select execution, workspace, owner, fence, last_seq, wake_at, has_slot, has_key, concurrency_key, priority
  from live
 where execution = $1;

-- owned_live: what a worker owns, after a cursor. Uses live_by_owner.
select execution, workspace, owner, fence, last_seq, wake_at, has_slot, has_key, concurrency_key, priority
  from live
 where owner = $1 and execution > $2
 order by execution
 limit $3;

-- own_live: the worker is the owner from now on; whoever was before is refused.
update live
   set owner = $1, fence = fence + 1
 where execution = $2;

-- claim_live: the same, with a slot and its key.
update live
   set owner = $1, fence = fence + 1, wake_at = null, has_slot = 1,
       has_key = case when concurrency_key is null then 0 else 1 end
 where execution = $2;

-- park_live: nobody has it until then; a slot is given back, a key kept.
update live
   set owner = null, last_seq = $1, wake_at = $2, has_slot = 0
 where execution = $3 and fence = $4;

-- due_live: parked executions whose time has come, the earliest first. Uses live_by_wake.
select execution, workspace, owner, fence, last_seq, wake_at, has_slot, has_key, concurrency_key, priority
  from live
 where owner is null and wake_at is not null and wake_at <= $1
 order by wake_at
 limit $2 {{skip_locked}};

-- next_wake: when the next parked execution is due. Uses live_by_wake.
select min(wake_at)
  from live
 where owner is null and wake_at is not null;
