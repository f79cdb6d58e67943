-- +goose Up

-- What people are notified of. created_at is later than that of all others of the person: it is their order.
create table keep.notifications (
    id           text        primary key,
    user_id      text        not null,
    tenant_id    text, -- that it was sent in; null for one of the platform
    type         text        not null,
    title        text        not null,
    body         text        not null,
    icon         text        not null,
    action_type  text        not null,
    reference_id text        not null,
    data         jsonb       not null, -- an object of strings
    created_at   timestamptz not null,
    read_at      timestamptz
);
create unique index notifications_order on keep.notifications (user_id, created_at);
create index notifications_tenant on keep.notifications (tenant_id) where tenant_id is not null;
create index notifications_age on keep.notifications (created_at);

-- The devices that notifications are pushed to. One that passes to another person gets another id.
create table keep.devices (
    id           uuid        primary key,
    user_id      text        not null,
    token        text        not null unique,
    name         text        not null,
    type         text        not null,
    created_at   timestamptz not null,
    last_seen_at timestamptz not null
);
create index devices_person on keep.devices (user_id);

-- +goose Down
drop table keep.devices;
drop table keep.notifications;
