-- upsert_cached_result: the result to reuse for the same inputs and configuration until it expires.
insert into cached_result (workspace, key, output, blob, ports, expires_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (workspace, key) do update
   set output = excluded.output, blob = excluded.blob, ports = excluded.ports, expires_at = excluded.expires_at;

-- get_cached_result: the result to reuse, if it has not expired.
select workspace, key, output, blob, ports, expires_at
  from cached_result
 where workspace = $1 and key = $2 and expires_at > $3;

-- forget_cached_results: at most so many expired ones go. Uses cached_result_by_expiry.
delete from cached_result
 where (workspace, key) in (select workspace, key from cached_result where expires_at <= $1 order by expires_at limit $2);
