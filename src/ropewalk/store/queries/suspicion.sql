-- upsert_suspicion: the execution was under way when its worker died, once more if it was before.
insert into suspicion (execution, deaths, on_trial)
values ($1, $2, $3)
on conflict (execution) do update
   set deaths = suspicion.deaths + excluded.deaths;

-- suspects: those of these executions ($1: a JSON list) that were under way when their worker died, and have stored
-- $2 bytes or more, in their log and as large values.
select execution, deaths, on_trial
  from suspicion
 where execution in ({{each_of_the_list}})
   and coalesce((select sum(length(log.entry)) from log where log.execution = suspicion.execution), 0)
       + coalesce((select sum(blob.size) from blob_reference
                    inner join blob on blob.hash = blob_reference.hash
                    where blob_reference.execution = suspicion.execution), 0) >= $2
 order by execution;

-- try_suspect: it is taken up alone; if its worker dies once more, that is why.
update suspicion
   set on_trial = 1
 where execution = $1;

-- delete_suspicion: it was taken up, and that is written.
delete from suspicion
 where execution = $1;

-- note_set_aside: it is taken up no more, unless a person says so.
update suspicion
   set set_aside_at = $1
 where execution = $2;

-- hand_live: an execution of one owner is another's from now on.
update live
   set owner = $1, fence = fence + 1
 where execution = $2 and owner = $3;

-- get_suspicion: in how many deaths it was under way, and since when it is set aside.
select deaths, set_aside_at
  from suspicion
 where execution = $1;

-- set_aside: the executions that are, the oldest first.
select execution
  from suspicion
 where set_aside_at is not null
 order by set_aside_at, execution
 limit $1;
