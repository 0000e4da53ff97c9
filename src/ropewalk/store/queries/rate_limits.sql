-- workspace_rate_limits: the rate limits of every workspace that has some.
select id, rate_limits
  from workspace
 where rate_limits is not null;

-- set_rate_limits: the rate limits of a workspace.
update workspace
   set rate_limits = $1
 where id = $2;

-- ensure_rate_limit: there is a row for the limit; a new one has no slots.
insert into rate_limit (workspace, name, most, per, slots)
values ($1, $2, $3, $4, '[]')
on conflict (workspace, name) do nothing;

-- lock_rate_limit: the slots of a limit, kept from others until the end of the transaction.
select slots
  from rate_limit
 where workspace = $1 and name = $2
   {{for_update}};

-- set_rate_limit: the slots of a limit as they are now.
update rate_limit
   set most = $1, per = $2, slots = $3
 where workspace = $4 and name = $5;

-- get_rate_limit: a limit that attempts of a workspace wait for: its own, else that of the configuration.
select most, per, slots
  from rate_limit
 where name = $2 and workspace in ($1, '')
 order by workspace desc
 limit 1;
