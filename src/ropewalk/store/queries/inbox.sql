-- insert_inbox: an execution is to be told something.
insert into inbox (id, execution, signal, sent_at)
values ($1, $2, $3, $4);

-- ask_inbox: the same, by a worker that waits for the answer.
insert into inbox (id, execution, signal, sent_at, sent_by, wants_answer)
values ($1, $2, $3, $4, $5, 1);

-- answer_inbox: it was told, and this came of it; in the transaction of the events it caused.
update inbox
   set answer = $1
 where id = $2;

-- inbox_answer: what came of it, once something has.
select answer
  from inbox
 where id = $1;

-- drop_answers: answers that no worker has asked for since then.
delete from inbox
 where wants_answer = 1 and sent_at < $1;

-- delete_inbox: it was told; in the transaction of the events it caused.
delete from inbox
 where id = $1;

-- forget_inbox: the execution to be told does not exist.
delete from inbox
 where id = $1;

-- forget_unless_coming: there is no such child, nor will there be. The message by which one is started goes with the
-- commit by which it is there, so in every moment there is one or the other. Nearly never asked: reads every letter.
delete from inbox
 where id = $1
   and not exists (select 1 from execution where execution.id = $2)
   and not exists (select 1 from inbox as starting
                    where starting.signal like '{"type":"StartChild",%'
                      and starting.signal like '%"child":"' || $2 || '"%');

-- list_inbox: what an execution has yet to be told, in the order it was said. By the store's time first: ids are made of
-- clocks, which may be wrong. Uses inbox_by_execution.
select id, execution, signal, sent_at
  from inbox
 where execution = $1 and answer is null
 order by sent_at, id
 limit $2;

-- messages_for: what the executions of one worker, and those without an owner, have yet to be told, in order.
select inbox.id, inbox.execution, inbox.signal, inbox.sent_by, inbox.wants_answer
  from inbox
  left join live on live.execution = inbox.execution
 where inbox.answer is null and (live.owner is null or live.owner = $1)
 order by inbox.id
 limit $2;

-- message_waits: whether it has yet to be told.
select 1
  from inbox
 where id = $1 and answer is null;
