-- ensure_workspace: the workspace exists; one that was there stays as it is.
insert into workspace (id, plan, slots, created_at)
values ($1, $2, $3, $4)
on conflict (id) do nothing;

-- get_workspace: one workspace.
select id, plan, slots, created_at, rate_limits
  from workspace
 where id = $1;

-- list_workspaces: workspaces by id, after a cursor.
select id, plan, slots, created_at, rate_limits
  from workspace
 where id > $1
 order by id
 limit $2;

-- set_plan: another plan, and its limit in force.
update workspace
   set plan = $1, slots = $2
 where id = $3;

-- set_slots: a limit that holds instead of the plan's.
update workspace
   set slots = $1
 where id = $2;

-- workspaces_of: the workspaces a subject has a part in, by id after a cursor: a home, a role, or something shared.
select id, plan, slots, created_at, rate_limits
  from workspace
 where id in (select workspace from member where subject = $1
              union select workspace from acl where subject = $1
              union select cast($2 as text))
   and id > $3
 order by id
 limit $4;
