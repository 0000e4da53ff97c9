-- last_commit: under which epoch a worker may write, and the number of its last commit.
select epoch, commits
  from worker
 where id = $1;

-- leave_worker: the worker is gone, and the others need not wait for its lease to end.
update worker
   set heartbeat_at = 0, has_lock = 0
 where id = $1 and epoch = $2;

-- watched_workers: the workers whose session the database watches, and which have not left.
select id
  from worker
 where has_lock = 1 and heartbeat_at > 0
 order by id;
