-- Credentials: their secret fields are encrypted with a key of their workspace, which the master key wraps.

create table data_key (
    workspace text primary key,
    wrapped bytea not null,
    master text not null,
    created_at bigint not null
);

create table credential (
    id text primary key,
    workspace text not null,
    name text not null,
    type text not null,
    plain text not null,
    hosts text not null,
    revision bigint not null,
    created_at bigint not null,
    created_by text not null,
    updated_at bigint not null,
    updated_by text not null,
    last_used_at bigint,
    token bytea,
    token_until bigint,
    token_serial bigint not null default 0,
    renewed_by text,
    renewed_until bigint,
    unique (workspace, name)
);

create table credential_field (
    credential text not null,
    field text not null,
    sealed bytea not null,
    primary key (credential, field)
);

create table credential_acl (
    workspace text not null,
    credential text not null,
    subject text not null,
    created_at bigint not null,
    created_by text not null,
    primary key (workspace, credential, subject)
);
