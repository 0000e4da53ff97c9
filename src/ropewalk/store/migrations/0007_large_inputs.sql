-- Inputs that are too large for the log are kept as a blob, once for all attempts that share them.

alter table dead_letter add column inputs_blob text;

-- What was under way when its worker died, until its next commit; what is set aside for that, until a person says so.

create table suspicion (
    execution text primary key,
    deaths bigint not null,
    on_trial bigint not null,           -- 1: it was taken up alone
    set_aside_at bigint                 -- null: it is not set aside
);
