-- +goose Up

-- Addresses of invitations that went out within the last hour or are going out now, each by its job, whether or not they have been removed from the
-- tenant since: an address gets five within an hour. The row of a mail that fails is removed.
create table if not exists keep.mailed_invitations (
    job       bigint      primary key,
    email     text        not null,
    mailed_at timestamptz not null
);
create index if not exists mailed_invitations_email on keep.mailed_invitations (lower(email), mailed_at);

-- +goose Down
drop table keep.mailed_invitations;
