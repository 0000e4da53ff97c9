-- live_heads: the executions of a workspace that are not over, newest first, with the number of each one's last entry.
select live.execution, execution.workflow,
       (select max(log.seq) from log where log.execution = live.execution)
  from live
 inner join execution on execution.id = live.execution
 where live.workspace = $1
   and (cast($2 as text) is null or execution.workflow = $2)
 order by live.execution desc
 limit $3;

-- new_heads: the same for those whose id is after this, over or not, oldest first.
-- Only the newest ids are walked, by whichever index has them.
select execution.id, execution.workflow,
       (select max(log.seq) from log where log.execution = execution.id)
  from execution
 where workspace = $1 and id > $3
   and (cast($2 as text) is null or workflow = $2)
 order by id
 limit $4;

-- last_entry_numbered: the newest entry of a log, with its number.
select seq, entry
  from log
 where execution = $1
 order by seq desc
 limit 1;
