-- insert_event_wait: an execution waits for an event from now on.
insert into event_wait (execution, node, item, attempt, workspace, subject, filter, scope)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (execution, node, item) do update
   set attempt = excluded.attempt, subject = excluded.subject, filter = excluded.filter, scope = excluded.scope;

-- delete_event_wait: it waits no more.
delete from event_wait
 where execution = $1 and node = $2 and item = $3;

-- list_event_waits: the executions that wait for events in a workspace. Uses event_wait_by_workspace.
select execution, node, item, attempt, subject, filter, scope
  from event_wait
 where workspace = $1
 order by execution, node, item;

-- event_waits_of: what events these executions wait for ($1: a JSON list).
select execution, node, item
  from event_wait
 where execution in ({{each_of_the_list}});
