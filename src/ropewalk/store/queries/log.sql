-- insert_log: what one append adds to an execution's log. A second entry under the same number is refused.
insert into log (execution, seq, entry)
values ($1, $2, $3);

-- log_heads: the number of the newest entry of each of these logs ($1: a JSON list of executions).
select execution, max(seq)
  from log
 where execution in ({{each_of_the_list}})
 group by execution;

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
