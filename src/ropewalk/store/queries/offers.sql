-- {{offer}}: the columns of an `Offer`, in its order.
id, execution, workspace, node, item, attempt, pool, work, offered_at, leased_by, lease_until, fence, heartbeat_at,
is_stopped;

-- insert_offer: a run that a runner of its pool may carry out.
insert into offer (id, execution, workspace, node, item, attempt, pool, work, offered_at, fence)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0);

-- lease_offers: hand a runner the oldest runs of a pool, skipping rows another runner is taking. Uses offer_by_pool.
-- A materialized CTE, so that the planner cannot run the limited select more than once.
with oldest as materialized (
    select id as offer_id from offer
     where pool = $1 and leased_by is null and is_stopped = 0
     order by offered_at, id
     limit $2 {{skip_locked}})
update offer
   set leased_by = $3, lease_until = $4, heartbeat_at = $5, fence = fence + 1
  from oldest
 where id = offer_id
returning {{offer}};

-- lease_offers_in: the same for the runs of one workspace. Uses offer_by_pool.
with oldest as materialized (
    select id as offer_id from offer
     where pool = $1 and workspace = $6 and leased_by is null and is_stopped = 0
     order by offered_at, id
     limit $2 {{skip_locked}})
update offer
   set leased_by = $3, lease_until = $4, heartbeat_at = $5, fence = fence + 1
  from oldest
 where id = offer_id
returning {{offer}};

-- cap_offer: a lease ends with the time limit of its run.
update offer
   set lease_until = $1
 where id = $2 and lease_until > $1;

-- unlease_offer: its runner never heard of the lease; other runners may have it.
update offer
   set leased_by = null, lease_until = null, heartbeat_at = null
 where id = $1 and leased_by = $2 and fence = $3;

-- next_offer: what a runner of a pool would be handed first. Uses offer_by_pool.
select id
  from offer
 where pool = $1 and workspace = $2 and leased_by is null and is_stopped = 0
 order by offered_at, id
 limit 1;

-- any_offer: whether anything is offered or leased at all.
select 1
  from offer
 limit 1;

-- get_offer: one run that is offered or leased.
select {{offer}}
  from offer
 where id = $1;

-- extend_offer: the runner is alive and keeps the run; nothing for an old fence or after the end of the lease.
update offer
   set heartbeat_at = $1, lease_until = case when $2 > lease_until then $2 else lease_until end
 where id = $3 and leased_by = $4 and fence = $5 and lease_until >= $1
returning is_stopped;

-- end_offer: the runner reports; nothing for an old fence or after the end of the lease.
delete from offer
 where id = $1 and leased_by = $2 and fence = $3 and lease_until >= $4
returning execution, node, item, attempt;

-- expired_offers: runs whose runner has gone silent, longest first; gone for all others. Uses offer_by_expiry.
with silent as materialized (
    select id as offer_id from offer
     where leased_by is not null and lease_until < $1
     order by lease_until
     limit $2 {{skip_locked}})
delete from offer
 where id in (select offer_id from silent)
returning execution, node, item, attempt, leased_by, lease_until - heartbeat_at;

-- stop_offer: the run is not wanted any more; its runner hears of it with its next heartbeat.
update offer
   set is_stopped = 1
 where execution = $1 and node = $2 and item = $3 and attempt = $4;

-- withdraw_offer: the same for one that no runner has taken.
delete from offer
 where execution = $1 and node = $2 and item = $3 and attempt = $4 and leased_by is null;

-- delete_offers: the execution is over; what is reported of it from now on is too late.
delete from offer
 where execution = $1;

-- offers_of: what of these executions is offered or leased ($1: a JSON list). Uses offer_by_execution.
select execution, node, item, attempt
  from offer
 where execution in ({{each_of_the_list}});
