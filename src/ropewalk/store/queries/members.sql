-- put_member: a member of a workspace, in this role from now on.
insert into member (workspace, subject, role, created_at, created_by)
values ($1, $2, $3, $4, $5)
on conflict (workspace, subject) do update set role = excluded.role;

-- get_member: the role of a subject in a workspace.
select workspace, subject, role, created_at, created_by
  from member
 where workspace = $1 and subject = $2;

-- list_members: the members of a workspace by subject, after a cursor.
select workspace, subject, role, created_at, created_by
  from member
 where workspace = $1 and subject > $2
 order by subject
 limit $3;

-- memberships: the workspaces a subject is a member of, after a cursor. Uses member_by_subject.
select workspace, subject, role, created_at, created_by
  from member
 where subject = $1 and workspace > $2
 order by workspace
 limit $3;

-- delete_member: a member no more.
delete from member
 where workspace = $1 and subject = $2;
