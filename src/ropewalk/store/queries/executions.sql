-- {{execution}}: the columns of an `Execution`, in its order.
id, workspace, workflow, version, state, trigger, parent, parent_node, parent_item, parent_attempt, concurrency_key,
accepted_at, started_at, finished_at, error, trace_id;

-- insert_execution: an accepted execution.
insert into execution (id, workspace, workflow, version, state, trigger, parent, parent_node, parent_item,
                       parent_attempt, concurrency_key, accepted_at, started_at, trace_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- set_execution: where an execution stands now.
update execution
   set state = $1, started_at = $2, finished_at = $3, error = $4
 where id = $5;

-- get_execution: one execution of a workspace.
select {{execution}}
  from execution
 where workspace = $1 and id = $2;

-- load_execution: one execution, for the worker that executes it.
select {{execution}}
  from execution
 where id = $1;

-- {{executions_of_workspace}}: the executions of a workspace before a cursor. Uses execution_by_workspace.
  from execution
 where workspace = $1 and id < $2
   and (cast($3 as text) is null or workflow = $3)
   and (cast($4 as text) is null or state = $4)
   and (cast($5 as text) is null or trigger = $5)
   and accepted_at >= $6 and accepted_at < $7
   and id >= $8
   {{searched}};

-- {{executions_of_workflow}}: the same for one workflow. Uses execution_by_workflow.
  from execution
 where workspace = $1 and id < $2
   and workflow = $3
   and (cast($4 as text) is null or state = $4)
   and (cast($5 as text) is null or trigger = $5)
   and accepted_at >= $6 and accepted_at < $7
   and id >= $8
   {{searched}};

-- {{failed_executions}}: the same for those that failed or timed out. Uses execution_by_error.
  from execution
 where workspace = $1 and id < $2
   and (cast($3 as text) is null or workflow = $3)
   and error is not null and state = $4
   and (cast($5 as text) is null or trigger = $5)
   and accepted_at >= $6 and accepted_at < $7
   and id >= $8
   {{searched}};

-- {{waiting_executions}}: those that are not over and have a node that waits. Uses run_by_execution.
   {{live_executions}}
   and exists (select 1 from run where run.execution = live.execution and run.state = 'WAITING');

-- {{live_executions}}: the same for those that are not over. Walks the small table of these, not history.
  from live
 inner join execution on execution.id = live.execution
 where live.workspace = $1 and live.execution < $2
   and (cast($3 as text) is null or execution.workflow = $3)
   and (cast($4 as text) is null or execution.state = $4)
   and (cast($5 as text) is null or execution.trigger = $5)
   and execution.accepted_at >= $6 and execution.accepted_at < $7
   and live.execution >= $8
   {{searched}};

-- {{searched}}: with a text in their id or the name of their workflow; with the right to read payloads ($11), also in
-- their error or concurrency key. Or with an id that begins or ends so ($12 and $13: patterns). No index serves it.
and (cast($10 as text) is null
     or execution.id like $10 escape '!'
     or execution.workflow in (select workflow.id from workflow
                                where workflow.workspace = $1 and lower(workflow.name) like $10 escape '!')
     or (cast($11 as bigint) = 1 and (lower(execution.error) like $10 escape '!'
                                      or lower(execution.concurrency_key) like $10 escape '!')))
and (cast($12 as text) is null or execution.id like $12 or execution.id like $13);

-- {{live_execution}}: {{execution}}, where the columns of other tables are there too.
execution.id, execution.workspace, execution.workflow, execution.version, execution.state, execution.trigger,
execution.parent, execution.parent_node, execution.parent_item, execution.parent_attempt,
execution.concurrency_key, execution.accepted_at, execution.started_at, execution.finished_at,
execution.error, execution.trace_id;

-- list_executions: the executions of a workspace, newest first.
select {{execution}}
{{executions_of_workspace}}
 order by id desc
 limit $9;

-- list_workflow_executions: the same for one workflow, newest first.
select {{execution}}
{{executions_of_workflow}}
 order by id desc
 limit $9;

-- list_failed_executions: the same for those that failed or timed out, newest first.
select {{execution}}
{{failed_executions}}
 order by id desc
 limit $9;

-- list_live_executions: the same for those that are not over, newest first.
select {{live_execution}}
{{live_executions}}
 order by live.execution desc
 limit $9;

-- list_waiting_executions: the same for those that have a node that waits, newest first.
select {{live_execution}}
{{waiting_executions}}
 order by live.execution desc
 limit $9;

-- first_executions: the executions of a workspace, oldest first.
select {{execution}}
{{executions_of_workspace}}
 order by id
 limit $9;

-- first_workflow_executions: the same for one workflow, oldest first.
select {{execution}}
{{executions_of_workflow}}
 order by id
 limit $9;

-- first_failed_executions: the same for those that failed or timed out, oldest first.
select {{execution}}
{{failed_executions}}
 order by id
 limit $9;

-- first_live_executions: the same for those that are not over, oldest first.
select {{live_execution}}
{{live_executions}}
 order by live.execution
 limit $9;

-- first_waiting_executions: the same for those that have a node that waits, oldest first.
select {{live_execution}}
{{waiting_executions}}
 order by live.execution
 limit $9;

-- count_executions: how many are in list_executions, counted no further than the limit.
select count(*)
  from (select 1
{{executions_of_workspace}}
         limit $9) as found;

-- count_workflow_executions: how many are in list_workflow_executions, counted no further than the limit.
select count(*)
  from (select 1
{{executions_of_workflow}}
         limit $9) as found;

-- count_failed_executions: how many are in list_failed_executions, counted no further than the limit.
select count(*)
  from (select 1
{{failed_executions}}
         limit $9) as found;

-- count_live_executions: how many are in list_live_executions, counted no further than the limit.
select count(*)
  from (select 1
{{live_executions}}
         limit $9) as found;

-- count_waiting_executions: how many are in list_waiting_executions, counted no further than the limit.
select count(*)
  from (select 1
{{waiting_executions}}
         limit $9) as found;

-- workflow_names: what these workflows are called ($1: a JSON list of ids).
select id, name
  from workflow
 where id in ({{each_of_the_list}});
