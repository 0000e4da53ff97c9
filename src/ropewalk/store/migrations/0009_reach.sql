-- A version that was saved by an actor with whom single workflows are shared reaches those workflows and nothing else.
-- Earlier versions of actors who have a share of the workflow, and no part in its workspace, are bounded from now on.

alter table workflow_version add column bounded_by text;
update workflow_version set bounded_by = created_by
 where exists (select 1 from acl where acl.workflow = workflow_version.workflow
                                   and acl.subject = workflow_version.created_by)
   and not exists (select 1 from workflow inner join member on member.workspace = workflow.workspace
                    where workflow.id = workflow_version.workflow and member.subject = workflow_version.created_by)
   and not exists (select 1 from workflow inner join api_key
                      on api_key.workspace = workflow.workspace or api_key.is_root = 1
                    where workflow.id = workflow_version.workflow
                      and 'key:' || api_key.id = workflow_version.created_by);
