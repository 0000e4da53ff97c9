-- create_migration: the table that remembers which steps were taken.
create table if not exists migration (
    number bigint primary key,
    name text not null,
    checksum text not null,
    applied_at bigint not null
);

-- applied_migrations: the steps taken, by number.
select number, checksum
  from migration
 order by number;

-- insert_migration: this step was taken.
insert into migration (number, name, checksum, applied_at)
values ($1, $2, $3, $4);
