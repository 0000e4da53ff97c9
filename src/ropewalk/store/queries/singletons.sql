-- take_singleton: what one does for all is the holder's to do until then; nothing while another's time lasts.
insert into singleton (name, holder, until)
values ($1, $2, $3)
on conflict (name) do update
   set holder = excluded.holder, until = excluded.until
 where singleton.holder = excluded.holder or singleton.until <= $4
returning holder;

-- leave_singleton: any worker may have it again.
delete from singleton
 where name = $1 and holder = $2;
