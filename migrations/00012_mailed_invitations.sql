-- +goose Up

-- Addresses that an invitation was mailed to within the last hour, each by its job, whether or not they have been removed from the tenant since: an
-- address gets five within an hour.
create table keep.mailed_invitations (
    job       bigint      primary key,
    email     text        not null,
    mailed_at timestamptz not null
);
create index mailed_invitations_email on keep.mailed_invitations (lower(email), mailed_at);

-- +goose Down
drop table keep.mailed_invitations;
