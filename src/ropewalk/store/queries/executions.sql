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

-- load_execution: one execution, for whoever executes it.
select {{execution}}
  from execution
 where id = $1;

-- list_executions: the executions of a workspace, newest first, before a cursor. Uses execution_by_workspace.
select {{execution}}
  from execution
 where workspace = $1 and id < $2
   and (cast($3 as text) is null or workflow = $3)
   and (cast($4 as text) is null or state = $4)
   and (cast($5 as text) is null or trigger = $5)
   and accepted_at >= $6 and accepted_at < $7
   and id >= $8
 order by id desc
 limit $9;

-- list_workflow_executions: the same for one workflow. Uses execution_by_workflow.
select {{execution}}
  from execution
 where workspace = $1 and id < $2
   and workflow = $3
   and (cast($4 as text) is null or state = $4)
   and (cast($5 as text) is null or trigger = $5)
   and accepted_at >= $6 and accepted_at < $7
   and id >= $8
 order by id desc
 limit $9;

-- list_failed_executions: the same for those that failed or timed out. Uses execution_by_error.
select {{execution}}
  from execution
 where workspace = $1 and id < $2
   and (cast($3 as text) is null or workflow = $3)
   and error is not null and state = $4
   and (cast($5 as text) is null or trigger = $5)
   and accepted_at >= $6 and accepted_at < $7
   and id >= $8
 order by id desc
 limit $9;

-- list_live_executions: the same for those that are not over. Walks the small table of these, not history.
select execution.id, execution.workspace, execution.workflow, execution.version, execution.state, execution.trigger,
       execution.parent, execution.parent_node, execution.parent_item, execution.parent_attempt,
       execution.concurrency_key, execution.accepted_at, execution.started_at, execution.finished_at,
       execution.error, execution.trace_id
  from live
 inner join execution on execution.id = live.execution
 where live.workspace = $1 and live.execution < $2
   and (cast($3 as text) is null or execution.workflow = $3)
   and execution.state = $4
   and (cast($5 as text) is null or execution.trigger = $5)
   and execution.accepted_at >= $6 and execution.accepted_at < $7
   and live.execution >= $8
 order by live.execution desc
 limit $9;

-- list_named_executions: the same for those whose id begins or ends so ($9 and $10: patterns).
-- Walks execution_by_workspace, and looks at no other row of history than those.
select {{execution}}
  from execution
 where workspace = $1 and id < $2
   and (cast($3 as text) is null or workflow = $3)
   and (cast($4 as text) is null or state = $4)
   and (cast($5 as text) is null or trigger = $5)
   and accepted_at >= $6 and accepted_at < $7
   and id >= $8
   and (id like $9 or id like $10)
 order by id desc
 limit $11;

-- workflow_names: what these workflows are called ($1: a JSON list of ids).
select id, name
  from workflow
 where id in ({{each_of_the_list}});
