-- {{live}}: the columns of a `Live`, in its order.
execution, workspace, owner, fence, last_seq, wake_at, has_slot, has_key, concurrency_key, priority;

-- insert_live: an execution that is not over.
insert into live (execution, workspace, owner, fence, last_seq, wake_at, has_slot, has_key, concurrency_key, priority)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- update_live: its owner, how far it is, when to wake it, what it holds.
update live
   set owner = $1, last_seq = $2, wake_at = $3, has_slot = $4, has_key = $5
 where execution = $6;

-- reopen_live: the same for one that was over; the row that held it to tell it something did not have its priority.
update live
   set owner = $1, last_seq = $2, wake_at = $3, has_slot = $4, has_key = $5, priority = $6
 where execution = $7;

-- count_live: how far it is; its owner, and what it holds, stay as another transaction may have written them meanwhile.
update live
   set last_seq = $1
 where execution = $2;

-- expect_live: this worker owns it, as it must before the first commit about it writes anything.
select 1
  from live
 where execution = $1 and owner = $2;

-- delete_live: the execution is over; slot and key are free with it.
delete from live
 where execution = $1;

-- get_live: one execution that is not over.
select {{live}}
  from live
 where execution = $1;

-- owned_live: what a worker owns, after a cursor. Uses live_by_owner.
select {{live}}
  from live
 where owner = $1 and execution > $2
 order by execution
 limit $3;

-- acquire_live: the worker is the owner of an execution that has none.
update live
   set owner = $1, fence = fence + 1
 where execution = $2 and owner is null;

-- hold_ended: one that is over has an owner for as long as it takes to tell it something. Nothing if it is not over.
insert into live (execution, workspace, owner, fence, last_seq, wake_at, has_slot, has_key, concurrency_key, priority)
select id, workspace, $1, 1, 0, null, 0, 0, concurrency_key, 5
  from execution
 where id = $2 and state in ('SUCCESS', 'FAILED', 'CANCELLED', 'TIMEOUT')
   {{for_key_share}}
on conflict (execution) do nothing;

-- release_live: undoes acquire_live.
update live
   set owner = null
 where execution = $1 and owner = $2 and has_slot = 0;

-- unhold_ended: undoes hold_ended.
delete from live
 where execution = $1 and owner is null
   and exists (select 1 from execution
                where id = $1 and state in ('SUCCESS', 'FAILED', 'CANCELLED', 'TIMEOUT'));

-- take_over_live: what a worker left behind is another's from now on, some at a time. Uses live_by_owner.
with left_behind as materialized (
    select execution as left_execution from live
     where owner = $2
     order by execution
     limit $3 {{skip_locked}})
update live
   set owner = $1, fence = fence + 1
  from left_behind
 where execution = left_execution
returning execution;

-- claim_live: these executions ($1: a JSON list), which have no key, are the worker's, each with a slot.
update live
   set owner = $2, fence = fence + 1, has_slot = 1
 where execution in ({{each_of_the_list}});

-- claim_keyed_live: the same for one with a key, in the place after those that hold it: its ancestors.
-- No worker wakes what has an owner; when to wake it stays for the case that it is not dispatched.
update live
   set owner = $1, fence = fence + 1, has_slot = 1,
       has_key = case when concurrency_key is null or has_key > 0
                      then has_key
                      else 1 + coalesce((select max(holder.has_key) from live as holder
                                          where holder.workspace = live.workspace
                                            and holder.concurrency_key = live.concurrency_key
                                            and holder.has_key > 0), 0) end
 where execution = $2
returning has_key;

-- unclaim_live: the claimer cannot dispatch it; its slot is free again, and the key of one that has not begun: one that is
-- new, or a child, or was reopened.
update live
   set owner = null, has_slot = 0,
       has_key = case when exists (select 1 from execution where id = live.execution and state = 'PENDING')
                      then 0 else has_key end
 where execution = $1 and owner = $2;

-- abandon_live: its owner cannot read it; it has no slot, and no worker is to wake it.
update live
   set owner = null, wake_at = null, has_slot = 0
 where execution = $1 and owner = $2;

-- postpone_live: it cannot be woken now; no worker is to try before then.
update live
   set wake_at = $1
 where execution = $2 and owner is null;

-- due_live: parked executions whose time has come, the earliest first. Uses live_by_wake.
select execution
  from live
 where owner is null and wake_at is not null and wake_at <= $1
 order by wake_at
 limit $2;

-- take_due_live: the same, owned by a worker from now on; what another worker takes at this moment is left out.
-- Uses live_by_wake.
with due as materialized (
    select execution as due_execution from live
     where owner is null and wake_at is not null and wake_at <= $2
     order by wake_at
     limit $3 {{skip_locked}})
update live
   set owner = $1, fence = fence + 1
  from due
 where execution = due_execution
returning execution;

-- next_wake: when the next parked execution is due. Uses live_by_wake.
select min(wake_at)
  from live
 where owner is null and wake_at is not null;
