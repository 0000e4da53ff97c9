-- insert_audit: who did what to what.
insert into audit (id, at, workspace, actor, verb, object, before, after, detail)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- list_audit: what was done in a workspace, newest first, before a cursor. Uses audit_by_workspace.
select id, at, workspace, actor, verb, object, before, after, detail
  from audit
 where workspace = $1 and id < $2
   and (cast($3 as text) is null or actor = $3)
   and (cast($4 as text) is null or verb = $4)
   and (cast($5 as text) is null or object = $5)
 order by id desc
 limit $6;
