-- {{dead_letters_in}}: the dead letters of a workspace in one state, before a cursor; of a workflow, a node, a time.
select {{dead_letter}}
  from dead_letter
 where workspace = $1 and resolution = $2 and id < $3
   and (cast($4 as text) is null or workflow = $4)
   and (cast($5 as text) is null or node = $5)
   and created_at >= $6 and created_at < $7;

-- {{pending_in}}: the dead letters of a workspace that wait for a person, after a cursor and up to another.
select id, execution, node, item, attempt, created_at
  from dead_letter
 where workspace = $1 and resolution = 'PENDING' and id > $2 and id <= $3
   and (cast($4 as text) is null or workflow = $4)
   and (cast($5 as text) is null or node = $5)
   and (cast($6 as text) is null or failure_type = $6);

-- {{groups_of}}: the rows of `alike`, each a group; the newest dead letter speaks for all of its group.
select alike.fingerprint, alike.letters, oldest.created_at, newest.created_at,
       newest.workflow, newest.node, newest.failure_type, newest.reason
  from alike
 inner join dead_letter as oldest on oldest.id = alike.oldest
 inner join dead_letter as newest on newest.id = alike.newest
 order by alike.letters desc, alike.fingerprint;

-- {{dead_letter}}: the columns of a `DeadLetter`, in its order.
id, workspace, run, execution, workflow, node, item, attempt, failure_type, error_type, reason, fingerprint, inputs,
config, created_at, resolution, resolved_at, reviewed_by, notes, inputs_blob;

-- upsert_dead_letter: a run gave up, or its dead letter was resolved by its execution; a resolved one stays as it is.
insert into dead_letter (id, workspace, run, execution, workflow, node, item, attempt, failure_type, error_type, reason,
                         fingerprint, inputs, config, created_at, resolution, resolved_at, reviewed_by, inputs_blob)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
on conflict (id) do update
   set resolution = excluded.resolution, resolved_at = excluded.resolved_at, reviewed_by = excluded.reviewed_by
 where dead_letter.resolution = 'PENDING';

-- resolve_dead_letter: a person decided; nothing if one did before.
update dead_letter
   set resolution = $1, resolved_at = $2, reviewed_by = $3, notes = coalesce($4, notes)
 where id = $5 and resolution = 'PENDING';

-- note_dead_letter: a person adds to what is said about it, on a line of its own, in any state; up to so much.
update dead_letter
   set notes = coalesce(notes || $1, '') || $2
 where workspace = $3 and id = $4 and length(coalesce(notes || $1, '')) + length($2) <= $5;

-- get_dead_letter: one dead letter of a workspace.
select {{dead_letter}}
  from dead_letter
 where workspace = $1 and id = $2;

-- dead_letter_resolution: how a dead letter was resolved, if it was.
select resolution, reviewed_by
  from dead_letter
 where id = $1 and resolution <> 'PENDING';

-- list_dead_letters: dead letters of a workspace in one state, newest first, before a cursor.
-- Uses dead_letter_by_workspace.
{{dead_letters_in}}
 order by id desc
 limit $8;

-- list_alike_dead_letters: the same for one fingerprint. Uses dead_letter_by_fingerprint.
-- Apart, since not every planner knows the values: for "any or this one" it would read every dead letter of the workspace.
{{dead_letters_in}}
   and fingerprint = $8
 order by id desc
 limit $9;

-- list_shared_dead_letters: the same for these workflows ($1: a JSON list of ids), be it for one fingerprint or any.
select {{dead_letter}}
  from dead_letter
 where workspace = $2 and resolution = $3 and id < $4
   and (cast($5 as text) is null or workflow = $5)
   and (cast($6 as text) is null or node = $6)
   and created_at >= $7 and created_at < $8
   and (cast($9 as text) is null or fingerprint = $9)
   and workflow in ({{each_of_the_list}})
 order by id desc
 limit $10;

-- list_named_dead_letters: the same for those whose id begins or ends so ($8 and $9: patterns).
-- Walks dead_letter_by_workspace.
{{dead_letters_in}}
   and (id like $8 or id like $9)
   and (cast($10 as text) is null or fingerprint = $10)
   and (cast($11 as text) is null or execution = $11)
 order by id desc
 limit $12;

-- search_execution_dead_letters: the same for one execution, be it for one fingerprint or any.
-- Uses dead_letter_by_execution.
{{dead_letters_in}}
   and (cast($8 as text) is null or fingerprint = $8)
   and execution = $9
 order by id desc
 limit $10;

-- list_execution_dead_letters: every dead letter of one execution, oldest first. Uses dead_letter_by_execution.
select {{dead_letter}}
  from dead_letter
 where execution = $1
 order by id
 limit $2;

-- pending_dead_letters: what waits for a person, the oldest first, after a cursor and up to another.
-- Uses dead_letter_by_workspace.
{{pending_in}}
 order by id
 limit $7;

-- pending_alike_dead_letters: the same for one fingerprint. Uses dead_letter_by_fingerprint.
{{pending_in}}
   and fingerprint = $7
 order by id
 limit $8;

-- tried_again: how the last attempt at a node or item (-1: the node is no map) stands that came after its dead letter.
-- Runs have the time of their start in their ids, so that those before the dead letter are not looked at.
-- Uses run_by_execution.
select state
  from run
 where execution = $1 and id > $2 and node = $3 and coalesce(item, -1) = $4 and attempt > $5
 order by attempt desc
 limit 1;

-- dead_letter_groups: what lies unresolved, gathered by fingerprint, the most frequent first, after a cursor (how many,
-- fingerprint). Uses dead_letter_by_fingerprint.
with alike as materialized (
    select fingerprint, count(*) as letters, min(id) as oldest, max(id) as newest
      from dead_letter
     where workspace = $1 and resolution = 'PENDING'
     group by fingerprint
    having count(*) < $2 or (count(*) = $2 and fingerprint > $3)
     order by count(*) desc, fingerprint
     limit $4)
{{groups_of}};

-- shared_dead_letter_groups: the same for these workflows ($1: a JSON list of ids).
with alike as materialized (
    select fingerprint, count(*) as letters, min(id) as oldest, max(id) as newest
      from dead_letter
     where workspace = $2 and resolution = 'PENDING'
       and workflow in ({{each_of_the_list}})
     group by fingerprint
    having count(*) < $3 or (count(*) = $3 and fingerprint > $4)
     order by count(*) desc, fingerprint
     limit $5)
{{groups_of}};
