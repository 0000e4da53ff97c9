-- insert_log: what one append adds to an execution's log. A second entry under the same number is refused.
insert into log (execution, seq, entry)
values ($1, $2, $3);

-- log_heads: the number of the newest entry of each of these logs ($1: a JSON list of executions).
select execution, max(seq)
  from log
 where execution in ({{each_of_the_list}})
 group by execution;

-- last_entries: the newest entry of each of these logs ($1: a JSON list of executions).
select log.execution, log.entry
  from (select execution, max(seq) as newest
          from log
         where execution in ({{each_of_the_list}})
         group by execution) as head
  join log on log.execution = head.execution and log.seq = head.newest;

-- whole_logs: every entry of these logs ($1: a JSON list of executions), each log in order.
select execution, entry
  from log
 where execution in ({{each_of_the_list}})
 order by execution, seq;

-- log_entries: the entries of a log from the one that holds event $2 on, in order, at most $3.
select seq, entry
  from log
 where execution = $1
   and seq >= coalesce((select max(holder.seq) from log as holder where holder.execution = $1 and holder.seq <= $2), 0)
 order by seq
 limit $3;

-- entry_holding: the number of the entry that holds event $2.
select coalesce(max(seq), 0)
  from log
 where execution = $1 and seq <= $2;

-- short_log: the entries of a log from number $2 on, in order, if there are at most $3 of at most $4 bytes together; else
-- none.
select seq, entry
  from log
 where execution = $1 and seq >= $2
   and (select count(*) <= $3 and sum(size) <= $4
          from (select length(entry) as size
                  from log
                 where execution = $1 and seq >= $2
                 order by seq
                 limit $3 + 1) as rest)
 order by seq;

-- log_page: the entries of a log from number $2 on, in order, at most $3, and none that comes after $4 bytes or more; so
-- there is at least one. With each: how many there would be if their bytes did not count.
-- The lengths come first: to know the length of a long entry, a store need not read it.
with next as (
    select seq, length(entry) as size
      from log
     where execution = $1 and seq >= $2
     order by seq
     limit $3),
fitting as (
    select seq, sum(size) over (order by seq) - size as before from next)
select log.seq, log.entry, (select count(*) from next)
  from fitting
  join log on log.execution = $1 and log.seq = fitting.seq
 where fitting.before < $4
 order by log.seq;
