-- +goose Up

-- Addresses of members who have no account yet.
create table keep.pending_members (
    id         text primary key,
    tenant_id  text        not null,
    email      text        not null,
    created_at timestamptz not null default now()
);
create unique index pending_members_email on keep.pending_members (lower(email), tenant_id);

-- +goose Down
drop table keep.pending_members;
