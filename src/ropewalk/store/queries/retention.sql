-- old_executions: executions that ended before then, by age after a cursor and before another.
-- An id has the time of acceptance in it, so that its order is that of age, and no index is needed on what changes.
select id
  from execution
 where id > $1 and id < $2 and finished_at <= $3
 order by id
 limit $4;

-- lock_old_executions: the same, kept from others until the end of the transaction.
select id
  from execution
 where id > $1 and id < $2 and finished_at <= $3
 order by id
 limit $4 {{skip_locked}};

-- removable_executions: those of a range that nothing keeps, and how long their logs are. What keeps one: that it ended
-- since $3 or is not over, a dead letter that waits for a person or was resolved since $4, a caller who is about to
-- reopen it (until $5), something it was told since $6; and every ancestor, for as long as that is kept, since
-- reopening an ancestor comes back to it. A child that is not removed yet keeps it too.
with recursive lineage (execution, kin) as (
    select id, id
      from execution
     where id > $1 and id <= $2 and finished_at <= $3
     union all
    select lineage.execution, execution.parent
      from lineage
      join execution on execution.id = lineage.kin
     where execution.parent is not null)
select execution.id, coalesce((select max(log.seq) from log where log.execution = execution.id), 0)
  from execution
 where execution.id > $1 and execution.id <= $2 and execution.finished_at <= $3
   and not exists (select 1 from execution as child where child.parent = execution.id)
   and execution.id not in (
       select lineage.execution
         from lineage
        where exists (select 1 from live where live.execution = lineage.kin)
           or exists (select 1 from execution as above
                       where above.id = lineage.kin and (above.finished_at is null or above.finished_at > $3))
           or exists (select 1 from dead_letter
                       where dead_letter.execution = lineage.kin
                         and (dead_letter.resolution = 'PENDING' or dead_letter.resolved_at > $4))
           or exists (select 1 from retention_hold
                       where retention_hold.execution = lineage.kin and retention_hold.until > $5)
           or exists (select 1 from inbox where inbox.execution = lineage.kin and inbox.sent_at > $6))
 order by execution.id;

-- hold_execution: it stays until then; nothing if it is gone.
insert into retention_hold (execution, until)
select id, cast($1 as bigint)
  from execution
 where id = $2 {{for_key_share}}
on conflict (execution) do update
   set until = excluded.until;

-- forget_holds: holds that are over go.
delete from retention_hold
 where until <= $1;

-- insert_blob_reference: the log of an execution names a blob, in the transaction of the entry that does.
insert into blob_reference (hash, execution)
values ($1, $2)
on conflict (hash, execution) do nothing;

-- release_blobs: the log that names them goes; until then they count as named. Uses blob_reference_by_execution.
update blob_reference
   set until = $1
 where execution = $2;

-- forget_blob_references: at most so many that no longer count go. Uses blob_reference_by_end.
delete from blob_reference
 where (hash, execution) in (select hash, execution from blob_reference
                              where until is not null and until <= $1
                              order by until
                              limit $2);

-- remove_log: the whole log of an execution.
delete from log
 where execution = $1;

-- remove_runs: every run of an execution. Uses run_by_execution.
delete from run
 where execution = $1;

-- remove_dead_letters: every dead letter of an execution. Uses dead_letter_by_execution.
delete from dead_letter
 where execution = $1;

-- remove_inbox: what an execution was told and did not take in. Uses inbox_by_execution.
delete from inbox
 where execution = $1;

-- remove_event_waits: the events an execution waited for.
delete from event_wait
 where execution = $1;

-- remove_execution: the execution itself, after everything that speaks of it.
delete from execution
 where id = $1;

-- forget_dead_letters: at most so many that were requeued or fixed before then go. Uses dead_letter_by_resolved.
-- The log does not know of a discarded one; it goes with its execution, so that none is missing unaccountably.
delete from dead_letter
 where id in (select id from dead_letter
               where resolution in ('REQUEUED', 'FIXED') and resolved_at <= $1
               order by resolved_at
               limit $2);

-- forget_audit: at most so many entries from before then, with an id before this one, go, the oldest first. Ids are made of
-- clocks, which may be wrong: what was written since stays, with any id.
delete from audit
 where id in (select id from audit where id < $1 and at < $2 order by id limit $3);

-- walk_blobs: blobs after a cursor, and whether (1) they were there before then and nothing names them.
select hash, size,
       case when created_at <= $2
             and not exists (select 1 from blob_reference where blob_reference.hash = blob.hash)
            then 1 else 0 end
  from blob
 where hash > $1
 order by hash
 limit $3;

-- remove_blob: it was there before then, and nothing names it.
delete from blob
 where hash = $1 and created_at <= $2
   and not exists (select 1 from blob_reference where blob_reference.hash = blob.hash);

-- count_old_dead_letters: how many were requeued or fixed before then. Uses dead_letter_by_resolved.
select count(*)
  from dead_letter
 where resolution in ('REQUEUED', 'FIXED') and resolved_at <= $1;

-- count_old_idempotency: how many answers are as old as that. Uses idempotency_by_age.
select count(*)
  from idempotency
 where created_at <= $1;

-- count_expired_results: how many cached results have expired. Uses cached_result_by_expiry.
select count(*)
  from cached_result
 where expires_at <= $1;

-- note_forgotten: what was there before $2 may be gone; the latest such moment is kept.
insert into audit (id, at, workspace, actor, verb, object)
values ($1, $2, '', 'retention', 'forgot', $3)
on conflict (id) do update
   set at = excluded.at
 where excluded.at > audit.at;

-- forgotten: up to when what may be gone. Uses audit_by_workspace.
select object, at
  from audit
 where workspace = '' and verb = 'forgot';
