-- get_kept_value: what is kept under a key, if it has not expired.
select value, version, expires_at
  from kept_value
 where workspace = $1 and space = $2 and key = $3 and (expires_at is null or expires_at > $4);

-- ensure_kept_value: there is a row for the key; a new one has expired at once, so that nothing is kept in it yet.
insert into kept_value (workspace, space, key, value, version, expires_at)
values ($1, $2, $3, 'null', 0, 0)
on conflict (workspace, space, key) do nothing;

-- lock_kept_value: the row of a key, expired or not, kept from others until the end of the transaction.
select value, version, expires_at
  from kept_value
 where workspace = $1 and space = $2 and key = $3
   {{for_update}};

-- set_kept_value: what is kept under a key from now on.
update kept_value
   set value = $1, version = $2, expires_at = $3
 where workspace = $4 and space = $5 and key = $6;

-- claim_kept_value: the key is this claimer's unless another has it; touches no row then.
insert into kept_value (workspace, space, key, value, version, expires_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (workspace, space, key) do update
   set value = excluded.value, version = excluded.version, expires_at = excluded.expires_at
 where kept_value.expires_at <= $5 or kept_value.value = excluded.value;

-- forget_kept_values: at most so many expired ones go. Uses kept_value_by_expiry.
delete from kept_value
 where (workspace, space, key) in (select workspace, space, key from kept_value
                                    where expires_at <= $1
                                    order by expires_at
                                    limit $2);

-- count_expired_values: how many have expired. Uses kept_value_by_expiry.
select count(*)
  from kept_value
 where expires_at <= $1;
