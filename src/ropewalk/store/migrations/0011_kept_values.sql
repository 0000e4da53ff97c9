-- What nodes keep by key beyond an execution (kv.*, dedupe), and what their runs have done already.

create table kept_value (
    workspace text not null,
    space text not null,
    key text not null,
    value text not null,
    version bigint not null,
    expires_at bigint,
    primary key (workspace, space, key)
);
create index kept_value_by_expiry on kept_value (expires_at) where expires_at is not null;
