-- insert_key: a new API key.
insert into api_key (id, workspace, name, hash, role, scopes, pools, is_root, created_at, created_by, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- get_key: one key, of any workspace.
select id, workspace, name, hash, role, scopes, pools, is_root, created_at, created_by, expires_at, last_used_at,
       revoked_at
  from api_key
 where id = $1;

-- list_keys: the keys of a workspace, newest first, before a cursor. Uses api_key_by_workspace.
select id, workspace, name, hash, role, scopes, pools, is_root, created_at, created_by, expires_at, last_used_at,
       revoked_at
  from api_key
 where workspace = $1 and id < $2
 order by id desc
 limit $3;

-- has_keys: whether a key was ever made.
select 1
  from api_key
 limit 1;

-- revoke_key: it opens nothing any more.
update api_key
   set revoked_at = $1
 where workspace = $2 and id = $3 and revoked_at is null;

-- use_key: when it was used last.
update api_key
   set last_used_at = $1
 where id = $2;

-- lock_lasting_roots: the root keys that open everything for ever, kept from other revokers until the end of the
-- transaction. One with scopes may be unable to make another, so it does not count.
select id
  from api_key
 where is_root = 1 and revoked_at is null and expires_at is null and scopes is null
 order by id
   {{for_update}};
