-- The trace an execution and its runs are part of; null in rows of earlier versions, whose logs tell it.

alter table execution add column trace_id text;
alter table run add column trace_id text;
