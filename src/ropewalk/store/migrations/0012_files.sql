-- Content that comes in parts, and which workspaces have brought the content of files.

create table blob_part (
    hash text not null,
    part bigint not null,
    data bytea not null,
    primary key (hash, part)
);

create table file_owner (
    hash text not null,
    workspace text not null,
    primary key (hash, workspace)
);
