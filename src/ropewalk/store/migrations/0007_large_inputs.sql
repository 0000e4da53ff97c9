-- Inputs that are too large for the log are kept as a blob, once for all attempts that share them.

alter table dead_letter add column inputs_blob text;
