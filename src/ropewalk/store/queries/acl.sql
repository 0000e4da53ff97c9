-- put_acl: a workflow is shared with a subject, in this role from now on.
insert into acl (workspace, workflow, subject, role, created_at, created_by)
values ($1, $2, $3, $4, $5, $6)
on conflict (workspace, workflow, subject) do update set role = excluded.role;

-- get_acl: the role of a subject for a workflow.
select workspace, workflow, subject, role, created_at, created_by
  from acl
 where workspace = $1 and workflow = $2 and subject = $3;

-- list_acl: with whom a workflow is shared, by subject, after a cursor.
select workspace, workflow, subject, role, created_at, created_by
  from acl
 where workspace = $1 and workflow = $2 and subject > $3
 order by subject
 limit $4;

-- shared_with: the workflows of a workspace that are shared with a subject, after a cursor. Uses acl_by_subject.
select workspace, workflow, subject, role, created_at, created_by
  from acl
 where subject = $1 and workspace = $2 and workflow > $3
 order by workflow
 limit $4;

-- shared_workspaces: the workspaces where something is shared with a subject, after a cursor. Uses acl_by_subject.
select distinct workspace
  from acl
 where subject = $1 and workspace > $2
 order by workspace
 limit $3;

-- delete_acl: shared no more.
delete from acl
 where workspace = $1 and workflow = $2 and subject = $3;
