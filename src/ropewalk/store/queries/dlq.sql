-- upsert_dead_letter: a run gave up, or its dead letter was resolved by its execution; a resolved one stays as it is.
insert into dead_letter (id, workspace, run, execution, workflow, node, item, attempt, failure_type, error_type, reason,
                         fingerprint, inputs, config, created_at, resolution, resolved_at, reviewed_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
on conflict (id) do update
   set resolution = excluded.resolution, resolved_at = excluded.resolved_at, reviewed_by = excluded.reviewed_by
 where dead_letter.resolution = 'PENDING';

-- resolve_dead_letter: a person decided; nothing if one did before.
update dead_letter
   set resolution = $1, resolved_at = $2, reviewed_by = $3, notes = coalesce($4, notes)
 where id = $5 and resolution = 'PENDING';

-- note_dead_letter: what people have to say about it, whatever its state.
update dead_letter
   set notes = $1
 where workspace = $2 and id = $3;

-- get_dead_letter: one dead letter of a workspace.
select id, workspace, run, execution, workflow, node, item, attempt, failure_type, error_type, reason, fingerprint,
       inputs, config, created_at, resolution, resolved_at, reviewed_by, notes
  from dead_letter
 where workspace = $1 and id = $2;

-- list_dead_letters: dead letters of a workspace in one state, newest first, before a cursor.
-- Uses dead_letter_by_workspace.
select id, workspace, run, execution, workflow, node, item, attempt, failure_type, error_type, reason, fingerprint,
       inputs, config, created_at, resolution, resolved_at, reviewed_by, notes
  from dead_letter
 where workspace = $1 and resolution = $2 and id < $3
 order by id desc
 limit $4;

-- list_alike_dead_letters: the same for one fingerprint. Uses dead_letter_by_fingerprint.
select id, workspace, run, execution, workflow, node, item, attempt, failure_type, error_type, reason, fingerprint,
       inputs, config, created_at, resolution, resolved_at, reviewed_by, notes
  from dead_letter
 where workspace = $1 and resolution = $2 and id < $3 and fingerprint = $4
 order by id desc
 limit $5;

-- list_execution_dead_letters: every dead letter of one execution, oldest first. Uses dead_letter_by_execution.
select id, workspace, run, execution, workflow, node, item, attempt, failure_type, error_type, reason, fingerprint,
       inputs, config, created_at, resolution, resolved_at, reviewed_by, notes
  from dead_letter
 where execution = $1
 order by id
 limit $2;

-- dead_letter_groups: what lies unresolved, gathered by fingerprint, the most frequent first; the newest speaks for all.
-- Uses dead_letter_by_fingerprint.
with alike as materialized (
    select fingerprint, count(*) as letters, min(created_at) as first_at, max(created_at) as last_at, max(id) as newest
      from dead_letter
     where workspace = $1 and resolution = 'PENDING'
     group by fingerprint
     order by count(*) desc, fingerprint
     limit $2)
select alike.fingerprint, alike.letters, alike.first_at, alike.last_at,
       dead_letter.workflow, dead_letter.node, dead_letter.reason
  from alike
 inner join dead_letter on dead_letter.id = alike.newest
 order by alike.letters desc, alike.fingerprint;
