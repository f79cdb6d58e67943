-- +goose Up

-- Requests that bear an Idempotency-Key, for 24 hours. Neither the keys nor the requests nor the answers can be read or tried here: the request has
-- a MAC under the key, the answer is encrypted under it.
create table keep.idempotency (
    scope         bytea primary key, -- SHA-256 of the key, whose it is and what it is for
    content       bytea       not null, -- HMAC-SHA256 of the request
    began_at      timestamptz not null,
    claim         uuid        not null, -- of who carries the request out
    claimed_until timestamptz not null,
    answer        bytea -- null until there is one
);
create index idempotency_age on keep.idempotency (began_at);

-- +goose Down
drop table keep.idempotency;
