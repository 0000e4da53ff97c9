-- count_waiting: how many executions wait for a slot, counted up to a bound.
select count(*)
  from (select 1 from queue where state = 'PENDING' limit $1) as waiting;

-- full_workspaces: workspaces all of whose slots are taken while something waits, with how many that are.
select id, slots, (select count(*) from live where live.workspace = workspace.id and live.has_slot = 1) as taken
  from workspace
 where slots is not null
   and exists (select 1 from queue where queue.workspace = workspace.id and queue.state = 'PENDING')
   and slots <= (select count(*) from live where live.workspace = workspace.id and live.has_slot = 1)
 order by id
 limit $1;

-- count_dead_letters: how many dead letters are not resolved, counted up to a bound. By workspace, for the index.
select count(*)
  from (select 1
          from workspace
          join dead_letter on dead_letter.workspace = workspace.id and dead_letter.resolution = 'PENDING'
         limit $1) as pending;

-- count_breakers: how many breakers are in which state, counted up to a bound.
select state, count(*)
  from (select state from breaker limit $1) as known
 group by state;
