-- keep_secret: the first to come decides.
insert into secret (name, value)
values ($1, $2)
on conflict (name) do nothing;

-- get_secret: what was decided.
select value
  from secret
 where name = $1;
