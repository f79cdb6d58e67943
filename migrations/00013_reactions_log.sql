-- +goose Up

-- Which log the position is of: the id and the position of its first event, empty while it has none.
alter table keep.reactions add column if not exists log text not null default '';

-- +goose Down
alter table keep.reactions drop column log;
