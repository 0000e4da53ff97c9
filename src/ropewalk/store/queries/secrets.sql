-- keep_secret: the first to come decides.
insert into secret (name, value)
values ($1, $2)
on conflict (name) do nothing;

-- get_secret: what was decided.
select value
  from secret
 where name = $1;

-- replace_secret: another value from now on.
update secret
   set value = $2
 where name = $1;

-- drop_secret: it is kept elsewhere now, or not at all.
delete from secret
 where name = $1;
