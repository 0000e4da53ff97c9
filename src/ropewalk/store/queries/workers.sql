-- register_worker: a worker comes, or comes back; its epoch is raised, so what is written under the old one is refused.
insert into worker (id, epoch, host, pid, version, pool, slots, load, started_at, heartbeat_at)
values ($1, 1, $2, $3, $4, $5, $6, 0, $7, $7)
on conflict (id) do update
   set epoch = worker.epoch + 1, host = excluded.host, pid = excluded.pid, version = excluded.version,
       pool = excluded.pool, slots = excluded.slots, load = 0, started_at = excluded.started_at,
       heartbeat_at = excluded.heartbeat_at
returning epoch;

-- check_epoch: one row if the worker may still write; first in every commit.
select 1
  from worker
 where id = $1 and epoch = $2
   {{for_key_share}};

-- mark_time: the worker may still write, and the store's time has come this far.
update worker
   set heartbeat_at = $1
 where id = $2 and epoch = $3;

-- raise_epoch: what is written as this worker is refused from now on.
update worker
   set epoch = epoch + 1
 where id = $1;

-- stop_taking: the worker is about to leave, and takes nothing more.
update worker
   set slots = 0
 where id = $1;

-- latest_mark: the latest time any worker left in the store.
select max(heartbeat_at)
  from worker;

-- reset_marks: no worker has left a time after this one.
update worker
   set heartbeat_at = $1
 where heartbeat_at > $1;

-- get_worker: one worker.
select id, epoch, host, pid, version, pool, slots, load, started_at, heartbeat_at
  from worker
 where id = $1;

-- list_workers: every worker, those heard of last first.
select id, epoch, host, pid, version, pool, slots, load, started_at, heartbeat_at
  from worker
 order by heartbeat_at desc, id
 limit $1;

-- silent_workers: workers that left something behind and were not heard of since $1, the longest silent first; nor can
-- have been after $2, which is yet to come: the database had another clock then.
select id
  from worker
 where (heartbeat_at < $1 or heartbeat_at > $2) and exists (select 1 from live where live.owner = worker.id)
 order by heartbeat_at
 limit $3;

-- owning_workers: those of these workers ($1: a JSON list) that have something in hand. Uses live_by_owner.
select id
  from worker
 where id in ({{each_of_the_list}}) and exists (select 1 from live where live.owner = worker.id)
 order by id
 limit $2;

-- lock_worker: when a worker was last heard of; kept from its own writes until the end of the transaction.
-- A plain update would not conflict with the lock its commits take on the row. Nothing while another has the lock: a
-- worker that was stopped in the middle of a transaction keeps it for as long as the database lets it.
select heartbeat_at
  from worker
 where id = $1 {{skip_locked}};

-- hang_up: the sessions end in which workers last heard of before then are in the middle of a transaction.
{{hang_up}};

-- forget_workers: others than this one that were last heard of before then and own nothing.
delete from worker
 where id <> $1 and heartbeat_at < $2 and not exists (select 1 from live where live.owner = worker.id);
