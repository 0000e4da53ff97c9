-- What it takes to remove what is old: who names which blob, whose turn it is, what must stay for now.

create table blob_reference (
    hash text not null,
    execution text not null,
    until bigint,
    primary key (hash, execution)
);
create index blob_reference_by_execution on blob_reference (execution);
create index blob_reference_by_end on blob_reference (until) where until is not null;

-- Which executions name the blobs there are was not written down until now: they are kept for good.
insert into blob_reference (hash, execution)
select hash, '' from blob;

create index dead_letter_by_resolved on dead_letter (resolved_at) where resolution in ('REQUEUED', 'FIXED');

create table singleton (
    name text primary key,
    holder text not null,
    until bigint not null
);

create table retention_hold (
    execution text primary key,
    until bigint not null
);
