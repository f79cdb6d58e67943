-- +goose Up

-- When a sandbox was last cleaned up: a job that was made before has nothing left to do.
alter table keep.evaluation_restarts add column restarted_at timestamptz not null default now();

-- +goose Down
alter table keep.evaluation_restarts drop column restarted_at;
