-- insert_session: a person logged in by a browser.
insert into session (hash, actor, csrf_hash, created_at, expires_at)
values ($1, $2, $3, $4, $5);

-- get_session: one that is not over.
select hash, actor, csrf_hash, created_at, expires_at
  from session
 where hash = $1 and expires_at > $2;

-- delete_session: it is over.
delete from session
 where hash = $1;

-- forget_sessions: some of those that are over. Uses session_by_expiry.
delete from session
 where hash in (select hash from session where expires_at <= $1 order by expires_at limit $2);
