-- insert_audit: who did what to what.
insert into audit (id, at, workspace, actor, verb, object, before, after, detail)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- list_audit: what was done in a workspace, newest first, before a cursor. Uses audit_by_workspace.
select id, at, workspace, actor, verb, object, before, after, detail
  from audit
 where workspace = $1 and id < $2
 order by id desc
 limit $3;
