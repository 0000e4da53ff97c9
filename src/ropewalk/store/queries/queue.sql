-- insert_queue: an execution waits for its turn; one that is in the queue already waits anew.
insert into queue (id, workspace, state, priority, is_new, enqueued_at, not_before, attempts)
values ($1, $2, $3, $4, $5, $6, $7, 0)
on conflict (id) do update
   set state = excluded.state, priority = excluded.priority, is_new = excluded.is_new,
       enqueued_at = excluded.enqueued_at, not_before = excluded.not_before, attempts = 0,
       claimed_by = null, claimed_at = null, error = null;

-- delete_queue: the execution is over.
delete from queue
 where id = $1;

-- get_queue: one entry.
select id, workspace, state, priority, is_new, enqueued_at, not_before, attempts, claimed_by, claimed_at, error
  from queue
 where id = $1;

-- lock_waiting_workspaces: workspaces with something due, in turn after the one served last, kept from other claimers.
-- Locked first: a count taken in the claiming statement sees an older snapshot. The one here only saves the trouble.
select id, slots
  from workspace
 where (slots is null
        or slots > (select count(*) from live where live.workspace = workspace.id and live.has_slot = 1))
   and exists (select 1 from queue
                where queue.workspace = workspace.id and queue.state = 'PENDING' and queue.not_before <= $1)
 order by case when id > $2 then 0 else 1 end, id
 limit $3 {{skip_locked}};

-- count_slots: how many slots of a workspace are taken. Uses live_by_slot.
select count(*)
  from live
 where workspace = $1 and has_slot = 1;

-- any_waiting: whether anything is due, wherever.
select 1
  from queue
 where state = 'PENDING' and not_before <= $1
 limit 1;

-- claimable: what is due in a workspace and may have its key, in the order it is to start. Uses queue_by_claim.
-- Those that have not begun come with the first entry of their log, which is all there is of it in most cases.
-- What was enqueued after the claim began is due as well: a slot may have become free since, and goes to the first in line.
-- A key may be taken if none but ancestors hold it: its holders are always one line of descent, and siblings come one after
-- the other. What a worker has in hand is claimed when that worker lets go.
-- Locked: a worker that comes with a message between this look and the claim would own it as well.
select queue.id, queue.workspace, execution.workflow, execution.version, live.fence, live.last_seq, queue.priority,
       queue.is_new, queue.enqueued_at, queue.attempts, live.concurrency_key,
       case when queue.is_new = 1
            then (select log.entry from log where log.execution = queue.id and log.seq = 1) end
  from queue
 inner join live on live.execution = queue.id
 inner join execution on execution.id = queue.id
 where queue.workspace = $1 and queue.state = 'PENDING' and live.owner is null
   and (queue.not_before <= $2 or queue.not_before = queue.enqueued_at)
   and (live.concurrency_key is null or live.has_key > 0
        or not exists (select 1 from live as holder
                        where holder.workspace = $1 and holder.concurrency_key = live.concurrency_key
                          and holder.has_key > 0
                          and holder.execution not in (
                              with recursive ancestor (id) as (
                                  select execution.parent
                                  union all
                                  select above.parent from execution as above
                                   inner join ancestor on above.id = ancestor.id)
                              select id from ancestor where id is not null)))
 order by queue.is_new, queue.priority desc, queue.enqueued_at, queue.id
 limit $3 {{skip_locked}};

-- claim_queue: these entries ($1: a JSON list) are in their owner's hands; each goes when its execution begins.
update queue
   set state = 'CLAIMED', claimed_by = $2, claimed_at = $3
 where id in ({{each_of_the_list}}) and state = 'PENDING';

-- return_queue: a claimed entry waits again; it could not be dispatched.
update queue
   set state = $1, not_before = $2, attempts = $3, claimed_by = null, claimed_at = null, error = $4
 where id = $5;
