-- The filter of a wait for an event reads values of its execution: they are kept with it. Waits that began before have none,
-- and their filters see the event alone, as they did.

alter table event_wait add column scope text;

-- A child that uses the key of an ancestor holds it too, in the place after that one, so that its siblings wait. One that
-- has begun before holds none until it is claimed again.

drop index live_by_key;
create unique index live_by_key on live (workspace, concurrency_key, has_key) where has_key > 0;
