-- Failures are found by their error. By their state they were too, but then PostgreSQL counted the end of every execution,
-- good or bad, as a change of that index, and wrote a new entry into each index of the table. Workers of the version
-- before leave what times out on them without an error: as long as there are any, that is found among all ended ones.

update execution set error = 'the execution did not end in its time limit' where state = 'TIMEOUT' and error is null;
create index execution_by_error on execution (workspace, id) where error is not null;
drop index execution_by_failure;
