-- insert_idempotency: the answer a key was given; refused while an older answer holds.
insert into idempotency (workspace, route, key, body_hash, answer, created_at)
values ($1, $2, $3, $4, $5, $6);

-- get_idempotency: the answer a key was given since then.
select body_hash, answer
  from idempotency
 where workspace = $1 and route = $2 and key = $3 and created_at > $4;

-- delete_idempotency: the key is free if its answer is as old as that.
delete from idempotency
 where workspace = $1 and route = $2 and key = $3 and created_at <= $4;

-- forget_idempotency: at most so many answers as old as that go. Uses idempotency_by_age.
delete from idempotency
 where (workspace, route, key) in (select workspace, route, key from idempotency
                                    where created_at <= $1
                                    order by created_at
                                    limit $2);
