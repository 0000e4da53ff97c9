-- Failures are found by their error. By their state they were too, but then PostgreSQL counted the end of every execution,
-- good or bad, as a change of that index, and wrote a new entry into each index of the table.

update execution set error = 'the execution did not end in its time limit' where state = 'TIMEOUT' and error is null;
drop index execution_by_failure;
create index execution_by_failure on execution (workspace, id) where error is not null;
