-- +goose Up

-- Addresses that were invited to a role on the platform.
create table keep.invitations (
    id    text primary key,
    email text not null
);
create index invitations_email on keep.invitations (lower(email));

-- +goose Down
drop table keep.invitations;
