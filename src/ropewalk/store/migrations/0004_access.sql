-- Who may come in, and what they may do: API keys, members, rights on single workflows, sessions, and what the
-- servers of one store sign with.

create table api_key (
    id text primary key,
    workspace text not null,
    name text not null,
    hash text not null,
    role text not null,
    scopes text,
    pools text,
    is_root bigint not null,
    created_at bigint not null,
    created_by text not null,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint
);
create index api_key_by_workspace on api_key (workspace, id);

create table member (
    workspace text not null,
    subject text not null,
    role text not null,
    created_at bigint not null,
    created_by text not null,
    primary key (workspace, subject)
);
create index member_by_subject on member (subject, workspace);

create table acl (
    workspace text not null,
    workflow text not null,
    subject text not null,
    role text not null,
    created_at bigint not null,
    created_by text not null,
    primary key (workspace, workflow, subject)
);
create index acl_by_subject on acl (subject, workspace, workflow);

create table session (
    hash text primary key,
    actor text not null,
    csrf_hash text not null,
    created_at bigint not null,
    expires_at bigint not null
);
create index session_by_expiry on session (expires_at);

create table secret (
    name text primary key,
    value text not null
);
