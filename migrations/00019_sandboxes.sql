-- +goose Up

-- How often flags of a tenant had been evaluated when its sandbox was last cleaned up.
create table keep.evaluation_restarts (
    tenant_id   text   primary key,
    evaluations bigint not null
);

-- What the admins of sandboxes were told of beforehand: that the sandbox ends, and that it is deleted.
create table keep.sandbox_notices (
    tenant_id text        not null,
    notice    text        not null check (notice in ('ending', 'deletion')),
    ends_at   timestamptz not null, -- the end of the sandbox
    given_at  timestamptz not null,
    primary key (tenant_id, notice, ends_at)
);

-- Who asked for a sandbox and has not opened the mailed link. Its token is good until expires_at; only its hash is here.
create table keep.sandbox_requests (
    id         uuid        primary key,
    email      text        not null,
    name       text        not null,
    asked_at   timestamptz not null,
    expires_at timestamptz not null,
    hash       bytea       unique -- SHA-256; null until the link is mailed
);
create unique index sandbox_requests_email on keep.sandbox_requests (lower(email), asked_at);
create index sandbox_requests_expiry on keep.sandbox_requests (expires_at);

-- +goose Down
drop table keep.sandbox_requests;
drop table keep.sandbox_notices;
drop table keep.evaluation_restarts;
