-- insert_trigger: a trigger comes to be.
insert into workflow_trigger (id, workspace, workflow, name, kind, version, settings, is_declared, is_enabled, bounded_by,
                              created_at, created_by, changed_at, next_at, token)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);

-- get_trigger: one of a workspace.
select id, workspace, workflow, name, kind, version, settings, is_declared, is_enabled, bounded_by, created_at, created_by,
       changed_at, removed_at, cursor_at, next_at, last_execution, token
  from workflow_trigger
 where workspace = $1 and id = $2;

-- get_trigger_by_token: the webhook with this address. Uses workflow_trigger_by_token.
select id, workspace, workflow, name, kind, version, settings, is_declared, is_enabled, bounded_by, created_at, created_by,
       changed_at, removed_at, cursor_at, next_at, last_execution, token
  from workflow_trigger
 where token = $1;

-- list_triggers: those of a workspace that are there, of one workflow or ('') of all, after a cursor.
select id, workspace, workflow, name, kind, version, settings, is_declared, is_enabled, bounded_by, created_at, created_by,
       changed_at, removed_at, cursor_at, next_at, last_execution, token
  from workflow_trigger
 where workspace = $1 and ($2 = '' or workflow = $2) and removed_at is null and id > $3
 order by id
 limit $4;

-- triggers_of_workflow: all of a workflow, removed ones too, kept from others until the end of the transaction.
select id, workspace, workflow, name, kind, version, settings, is_declared, is_enabled, bounded_by, created_at, created_by,
       changed_at, removed_at, cursor_at, next_at, last_execution, token
  from workflow_trigger
 where workflow = $1
 order by id
   {{for_update}};

-- event_triggers: those of a workspace that listen to events.
select id, workspace, workflow, name, kind, version, settings, is_declared, is_enabled, bounded_by, created_at, created_by,
       changed_at, removed_at, cursor_at, next_at, last_execution, token
  from workflow_trigger
 where workspace = $1 and kind = 'EVENT' and is_enabled = 1 and removed_at is null;

-- queue_triggers: those of all workspaces that consume a queue.
select id, workspace, workflow, name, kind, version, settings, is_declared, is_enabled, bounded_by, created_at, created_by,
       changed_at, removed_at, cursor_at, next_at, last_execution, token
  from workflow_trigger
 where kind = 'QUEUE' and is_enabled = 1 and removed_at is null;

-- change_trigger: it has other settings, or is there again; it is looked at anew.
update workflow_trigger
   set kind = $1, version = $2, settings = $3, is_declared = $4, changed_at = $5, removed_at = null, cursor_at = null,
       next_at = $6, token = $7, bounded_by = $8
 where id = $9;

-- set_trigger_version: the same trigger starts another version.
update workflow_trigger
   set version = $1
 where id = $2;

-- switch_trigger: it fires from now on, or does not; what was due meanwhile is forgotten.
update workflow_trigger
   set is_enabled = $1, cursor_at = $2, next_at = $3, claimed_until = 0
 where id = $4;

-- remove_trigger: it fires no more; what it did is still told.
update workflow_trigger
   set removed_at = $1, next_at = null, claimed_until = 0
 where id = $2;

-- claim_due_triggers: those whose time has come, for this server alone until then. Uses workflow_trigger_by_time.
-- A materialized CTE, so that the planner cannot run the limited select more than once.
with due as materialized (
    select id from workflow_trigger
     where next_at <= $1 and claimed_until <= $1
     order by next_at
     limit $2 {{skip_locked}})
update workflow_trigger
   set claimed_until = $3
  from due
 where workflow_trigger.id = due.id
returning workflow_trigger.id, workspace, workflow, name, kind, version, settings, is_declared, is_enabled, bounded_by,
          created_at, created_by, changed_at, removed_at, cursor_at, next_at, last_execution, token;

-- next_trigger_time: when the first of them has to be looked at. Uses workflow_trigger_by_time.
select min(next_at)
  from workflow_trigger
 where next_at is not null;

-- move_trigger: it has decided up to this due time, and is looked at again then.
update workflow_trigger
   set cursor_at = $1, next_at = $2, claimed_until = 0
 where id = $3;

-- move_trigger_on: the same, and what it started.
update workflow_trigger
   set cursor_at = $1, next_at = $2, last_execution = $3, claimed_until = 0
 where id = $4;

-- set_last_execution: what it started last.
update workflow_trigger
   set last_execution = $1
 where id = $2;

-- postpone_trigger: it is looked at again then, without having decided anything.
update workflow_trigger
   set next_at = $1, claimed_until = 0
 where id = $2;

-- insert_fire: what became of one due time, delivery or message.
insert into trigger_fire (trigger_id, key, workspace, at, due_at, execution, reason, detail)
values ($1, $2, $3, $4, $5, $6, $7, $8);

-- get_fire: what became of this one.
select trigger_id, key, workspace, at, due_at, execution, reason, detail
  from trigger_fire
 where trigger_id = $1 and key = $2;

-- list_fires: the latest of a trigger, before a cursor. Uses trigger_fire_by_time.
select trigger_id, key, workspace, at, due_at, execution, reason, detail
  from trigger_fire
 where trigger_id = $1 and (at, key) < ($2, $3)
 order by at desc, key desc
 limit $4;

-- count_fires: how often it started something, and was skipped for which reason, since then.
select reason, count(*)
  from trigger_fire
 where trigger_id = $1 and at > $2
 group by reason;

-- forget_fires: at most so many that are as old as that go. Uses trigger_fire_by_age.
delete from trigger_fire
 where (trigger_id, key) in (select trigger_id, key from trigger_fire
                              where at <= $1
                              order by at
                              limit $2);

-- is_under_way: whether an execution is not over.
select 1
  from live
 where execution = $1;

-- count_backlog: how many wait in the queue of a workspace, at most so many. Uses queue_by_claim.
select count(*)
  from (select 1 from queue where workspace = $1 and state = 'PENDING' limit $2) as waiting;

-- count_under_way: how many executions that a trigger started are not over.
select count(*)
  from trigger_fire
 inner join live on live.execution = trigger_fire.execution
 where trigger_fire.trigger_id = $1;

-- rename_trigger: a removed one gives its name to another.
update workflow_trigger
   set name = $1
 where id = $2;
