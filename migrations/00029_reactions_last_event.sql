-- +goose Up

-- The last event up to the position: where the log holds another one at its place, it was restored from an older copy. Empty where that is not known.
alter table keep.reactions add column last_event jsonb not null default '{}';

-- +goose Down
alter table keep.reactions drop column last_event;
