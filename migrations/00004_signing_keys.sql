-- +goose Up
-- When a key begins to sign: it is published before, and signs until the next one does.
alter table keep.signing_keys add column signs_from timestamptz;
update keep.signing_keys set signs_from = created_at;
alter table keep.signing_keys alter column signs_from set not null;

-- +goose Down
alter table keep.signing_keys drop column signs_from;
