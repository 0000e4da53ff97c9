-- insert_inbox: someone tells an execution something.
insert into inbox (id, execution, signal, sent_at)
values ($1, $2, $3, $4);

-- delete_inbox: it was told; in the transaction of the events it caused.
delete from inbox
 where id = $1;

-- list_inbox: what an execution has yet to be told, in order. Uses inbox_by_execution.
select id, execution, signal, sent_at
  from inbox
 where execution = $1
 order by id
 limit $2;

-- count_inbox: how much an execution has yet to be told. Uses inbox_by_execution.
select count(*)
  from inbox
 where execution = $1;

-- owned_inbox: what the executions of one worker have yet to be told, in order, after a cursor.
select inbox.id, inbox.execution, inbox.signal, inbox.sent_at
  from inbox
 inner join live on live.execution = inbox.execution
 where live.owner = $1 and inbox.id > $2
 order by inbox.id
 limit $3;

-- unowned_inbox: what executions nobody has in hand have yet to be told, in order, after a cursor.
select inbox.id, inbox.execution, inbox.signal, inbox.sent_at
  from inbox
 inner join live on live.execution = inbox.execution
 where live.owner is null and inbox.id > $1
 order by inbox.id
 limit $2;
