-- +goose Up

-- How far the log has been followed to turn facts into jobs. There is one row, from the first start on.
create table keep.reactions (
    only_row   boolean     primary key default true check (only_row),
    engine     text        not null,
    commit     bigint      not null,
    prepare    bigint      not null,
    updated_at timestamptz not null
);

-- Addresses that a link to a new password was asked for, for two hours, whether or not somebody has them. asked_at is the whole minute: further requests
-- within it are the same.
create table keep.reset_requests (
    id       uuid        primary key,
    email    text        not null,
    asked_at timestamptz not null
);
create unique index reset_requests_email on keep.reset_requests (lower(email), asked_at);

-- The job that a link was mailed by: its next attempt drops the token of the one that failed.
alter table keep.mailed_tokens add column job bigint;

-- +goose Down
alter table keep.mailed_tokens drop column job;
drop table keep.reset_requests;
drop table keep.reactions;
