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

-- get_blob_slice: some of the bytes of a blob, from a place (the first is 1) on; of one in parts, the part there.
select substr(data, $2, $3)
  from blob_content
 where hash = $1
union all
select data
  from blob_part
 where hash = $1 and part = $4;

-- insert_blob_part: some of the bytes of a blob that is not whole yet.
insert into blob_part (hash, part, data)
values ($1, $2, $3);

-- has_blob_content: a row if the bytes of a blob are there.
select 1
  from blob_content
 where hash = $1
union all
select 1
  from blob_part
 where hash = $1 and part = 0;

-- name_blob_parts: the parts that came under the second name are the whole of what the first is the hash of.
update blob_part
   set hash = $1
 where hash = $2;

-- remove_blob_parts: the parts of a blob, after its row.
delete from blob_part
 where hash = $1;

-- forget_blob: the row of a name whose parts are gone, or have got their hash.
delete from blob
 where hash = $1;

-- remove_blob_content: the bytes of a blob, after its row.
delete from blob_content
 where hash = $1;
