-- +goose Up

-- What the links in mails prove: that whoever opens one reads the mails to a person's address. Each is good for one use.
create table keep.mailed_tokens (
    hash       bytea primary key, -- SHA-256
    purpose    text        not null check (purpose in ('reset', 'verify')),
    user_id    text        not null,
    issued_at  timestamptz not null,
    expires_at timestamptz not null
);
create index mailed_tokens_user on keep.mailed_tokens (user_id);
create index mailed_tokens_expiry on keep.mailed_tokens (expires_at);

-- A new password ends the sessions that began before: sessions_from, in whole seconds, as tokens tell it.
alter table keep.passwords add column sessions_from timestamptz;

-- +goose Down
alter table keep.passwords drop column sessions_from;
drop table keep.mailed_tokens;
