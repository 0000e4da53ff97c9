-- insert_file_owner: a workspace has brought content of this hash; what it has not brought it cannot read as a file.
insert into file_owner (hash, workspace)
values ($1, $2)
on conflict (hash, workspace) do nothing;

-- get_file_size: how large the content of a file is, if the workspace has brought it.
select blob.size
  from blob
 inner join file_owner on file_owner.hash = blob.hash
 where blob.hash = $1 and file_owner.workspace = $2;

-- remove_file_owners: the content is gone.
delete from file_owner
 where hash = $1;

-- remove_references_of: what names others is gone. Uses blob_reference_by_execution.
delete from blob_reference
 where execution = $1;

-- file_named_by: a row if the log of an execution names the file, or a large value does that the log names ($3: what
-- stands before the hash of a large value that names files).
select 1
  from blob_reference
 where hash = $1 and execution = $2 and until is null
union all
select 1
  from blob_reference as inside
 inner join blob_reference as named on inside.execution = $3 || named.hash
 where inside.hash = $1 and named.execution = $2 and named.until is null
 limit 1;

-- files_of_execution: the files of a workspace that the log of an execution names, or a large value does that the log
-- names ($3: what stands before the hash of a large value that names files).
select blob.hash, blob.size
  from blob
 inner join file_owner on file_owner.hash = blob.hash and file_owner.workspace = $2
 where blob.hash in (select hash
                       from blob_reference
                      where execution = $1 and until is null
                      union
                     select inside.hash
                       from blob_reference as inside
                      inner join blob_reference as named on inside.execution = $3 || named.hash
                      where named.execution = $1 and named.until is null)
 order by blob.hash
 limit $4;
