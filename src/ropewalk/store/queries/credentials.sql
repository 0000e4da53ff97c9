-- {{credential}}: the columns of a `Credential`, in its order.
id, workspace, name, type, plain, hosts, revision, created_at, created_by, updated_at, updated_by, last_used_at, token,
       token_until, token_serial;

-- insert_credential: a new one; the name must not be taken.
insert into credential (id, workspace, name, type, plain, hosts, revision, created_at, created_by, updated_at, updated_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $8, $9);

-- update_credential: its next revision, if it still has the one before; a kept token goes.
update credential
   set plain = $1, hosts = $2, revision = $3, updated_at = $4, updated_by = $5, token = null, token_until = null
 where workspace = $6 and id = $7 and revision = $3 - 1;

-- delete_credential: it is gone.
delete from credential
 where workspace = $1 and id = $2;

-- get_credential: one by its name.
select {{credential}}
  from credential
 where workspace = $1 and name = $2;

-- list_credentials: those of a workspace by name, after a cursor.
select {{credential}}
  from credential
 where workspace = $1 and name > $2
 order by name
 limit $3;

-- types_of_credentials: the types of those of a workspace that have these names ($1: a JSON list).
select name, type, id
  from credential
 where name in ({{each_of_the_list}}) and workspace = $2;

-- published_with_credentials: published versions that name credentials, by name of the workflow after a cursor.
select workflow.id, workflow.name, version, document
  from workflow
 inner join workflow_version on workflow_version.workflow = workflow.id and version = published
 where workspace = $1 and workflow.name > $2 and document like '%"credentials":%'
 order by workflow.name
 limit $3;

-- credential_fields: the sealed secrets of one.
select field, sealed
  from credential_field
 where credential = $1
 order by field;

-- put_credential_field: a sealed secret.
insert into credential_field (credential, field, sealed)
values ($1, $2, $3)
on conflict (credential, field) do update set sealed = excluded.sealed;

-- delete_credential_fields: all secrets of one.
delete from credential_field
 where credential = $1;

-- use_credential: it was used, as far as that was not noted lately.
update credential
   set last_used_at = $1
 where id = $2 and (last_used_at is null or last_used_at < $3);

-- claim_renewal: this worker renews the token, unless another does or has done so since it was read.
update credential
   set renewed_by = $1, renewed_until = $2
 where id = $3 and revision = $4 and (renewed_until is null or renewed_until <= $5 or renewed_by = $1)
   and token_serial = $6;

-- keep_token: the token that all workers share from now on.
update credential
   set token = $1, token_until = $2, token_serial = token_serial + 1, renewed_by = null, renewed_until = null
 where id = $3 and revision = $4 and renewed_by = $5;

-- end_renewal: the token could not be renewed; another worker may try.
update credential
   set renewed_by = null, renewed_until = null
 where id = $1 and renewed_by = $2;

-- get_data_key: the wrapped key of a workspace.
select wrapped, master
  from data_key
 where workspace = $1;

-- keep_data_key: the first to come decides.
insert into data_key (workspace, wrapped, master, created_at)
values ($1, $2, $3, $4)
on conflict (workspace) do nothing;

-- delete_idle_data_key: the key of a workspace that has no credentials any more.
delete from data_key
 where workspace = $1 and not exists (select 1 from credential where credential.workspace = $1);

-- list_data_keys: the keys that another master key wraps, by workspace after a cursor.
select workspace, wrapped, master
  from data_key
 where workspace > $1 and master <> $2
 order by workspace
 limit $3;

-- count_data_keys: how many keys each master key wraps.
select master, count(*)
  from data_key
 group by master
 order by master;

-- rewrap_data_key: wrapped by another master key from now on, if it is still wrapped as it was read.
update data_key
   set wrapped = $1, master = $2
 where workspace = $3 and master = $4;

-- put_credential_acl: a subject may use it.
insert into credential_acl (workspace, credential, subject, created_at, created_by)
values ($1, $2, $3, $4, $5)
on conflict (workspace, credential, subject) do nothing;

-- get_credential_acl: whether a subject may use it.
select workspace, credential, subject, created_at, created_by
  from credential_acl
 where workspace = $1 and credential = $2 and subject = $3;

-- list_credential_acl: who may use it, by subject after a cursor.
select workspace, credential, subject, created_at, created_by
  from credential_acl
 where workspace = $1 and credential = $2 and subject > $3
 order by subject
 limit $4;

-- delete_credential_acl: a subject may use it no more.
delete from credential_acl
 where workspace = $1 and credential = $2 and subject = $3;

-- delete_credential_shares: no subject may use it: it is gone.
delete from credential_acl
 where workspace = $1 and credential = $2;
