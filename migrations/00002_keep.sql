-- +goose Up
create schema keep;

-- The directory: names and addresses of people stand here alone, so that they can be erased.
create table keep.people (
    user_id        text primary key,
    email          text,
    email_verified boolean     not null default false,
    display_name   text        not null default '',
    created_at     timestamptz not null
);
create unique index people_email on keep.people (lower(email));

create table keep.tenant_contacts (
    tenant_id     text primary key,
    primary_email text,
    contact_name  text
);

-- When a member last used a tenant. The latest one is the person's active tenant.
create table keep.tenant_use (
    user_id   text        not null,
    tenant_id text        not null,
    at        timestamptz not null,
    primary key (user_id, tenant_id)
);

-- The local identity provider.
create table keep.passwords (
    user_id text primary key,
    hash    text not null -- argon2id in its PHC form
);
create table keep.refresh_tokens (
    hash       bytea primary key, -- SHA-256
    family     uuid        not null,
    user_id    text        not null,
    session_id text        not null,
    issued_at  timestamptz not null,
    expires_at timestamptz not null,
    used_at    timestamptz
);
create index refresh_tokens_session on keep.refresh_tokens (user_id, session_id);
create index refresh_tokens_expiry on keep.refresh_tokens (expires_at);
create table keep.signing_keys (
    kid         text primary key,
    private_key bytea       not null, -- PKCS #8
    created_at  timestamptz not null
);

-- Streams that a projection could not follow any further. They stay behind until the projection is rebuilt.
create table keep.parked (
    projection text        not null,
    building   boolean     not null,
    stream     text        not null,
    revision   bigint      not null,
    commit     bigint      not null,
    prepare    bigint      not null,
    error      text        not null,
    parked_at  timestamptz not null default now(),
    primary key (projection, building, stream)
);

-- +goose Down
drop schema keep cascade;
