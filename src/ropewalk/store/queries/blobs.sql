-- insert_blob: a blob exists, and was put then; a transaction that removes an old one waits for this, and leaves it.
insert into blob (hash, size, created_at)
values ($1, $2, $3)
on conflict (hash) do update
   set created_at = excluded.created_at;

-- insert_blob_content: the bytes of a blob; those that are there stay.
insert into blob_content (hash, data)
values ($1, $2)
on conflict (hash) do nothing;

-- get_blob_content: the bytes of a blob.
select data
  from blob_content
 where hash = $1;

-- get_blob_slice: some of the bytes of a blob, from a place (the first is 1) on.
select substr(data, $2, $3)
  from blob_content
 where hash = $1;

-- remove_blob_content: the bytes of a blob, after its row.
delete from blob_content
 where hash = $1;
