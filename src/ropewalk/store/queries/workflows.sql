-- insert_workflow: a new name; one that is taken stays as it is.
insert into workflow (id, workspace, name, created_at)
values ($1, $2, $3, $4)
on conflict (workspace, name) do nothing;

-- lock_workflow: the workflow of this name, kept from other savers until the end of the transaction.
select id, workspace, name, published, archived_at, created_at
  from workflow
 where workspace = $1 and name = $2
   {{for_update}};

-- insert_version: the next version.
insert into workflow_version (workflow, version, hash, document, created_at, created_by, bounded_by)
values ($1, $2, $3, $4, $5, $6, $7);

-- revive_workflow: the workflow is there again.
update workflow
   set archived_at = null
 where id = $1 and archived_at is not null;

-- publish_version: starts that name no version take this one.
update workflow
   set published = $1
 where id = $2 and archived_at is null
   and exists (select 1 from workflow_version where workflow = $2 and version = $1);

-- archive_workflow: no new starts; what is queued still runs.
update workflow
   set archived_at = $1, published = null
 where workspace = $2 and id = $3 and archived_at is null;

-- get_workflow: one workflow of a workspace by its id.
select id, workspace, name, published, archived_at, created_at
  from workflow
 where workspace = $1 and id = $2;

-- find_workflow: one workflow of a workspace by its id, else by its name.
select id, workspace, name, published, archived_at, created_at
  from workflow
 where workspace = $1 and id = $2
union all
select id, workspace, name, published, archived_at, created_at
  from workflow
 where workspace = $1 and name = $2
   and not exists (select 1 from workflow as named where named.workspace = $1 and named.id = $2);

-- get_workflow_by_name: one workflow of a workspace by its name.
select id, workspace, name, published, archived_at, created_at
  from workflow
 where workspace = $1 and name = $2;

-- list_workflows: the workflows of a workspace by name, after a cursor, archived ones if asked for, with their newest
-- version; only names that begin like this. Uses the index of unique (workspace, name).
select id, workspace, name, published, archived_at, created_at,
       (select max(version) from workflow_version where workflow_version.workflow = workflow.id) as latest
  from workflow
 where workspace = $1 and name > $2 and (archived_at is null or $3 = 1)
   and substr(name, 1, length(cast($4 as text))) = cast($4 as text)
 order by name
 limit $5;

-- get_version: one version of a workflow.
select workflow, version, hash, document, created_at, created_by, bounded_by
  from workflow_version
 where workflow = $1 and version = $2;

-- versions_of: the versions these executions are of ($1: a JSON list), each as often as it is named.
-- Materialized, so that the planner does not look for the executions of every version there is.
with named as materialized (
    select workflow as named_workflow, version as named_version
      from execution
     where id in ({{each_of_the_list}}))
select workflow, version, hash, document, created_at, created_by, bounded_by
  from named
 inner join workflow_version on workflow = named_workflow and version = named_version;

-- list_versions: the versions of a workflow without their documents, newest first, before a cursor.
select workflow, version, hash, created_at, created_by, bounded_by
  from workflow_version
 where workflow = $1 and version < $2
 order by version desc
 limit $3;
