-- The filter of a wait for an event reads values of its execution: they are kept with it. Waits that began before have none,
-- and their filters see the event alone, as they did.

alter table event_wait add column scope text;
