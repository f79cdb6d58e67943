-- +goose Up

-- How many invitations were made on a day in UTC, by a tenant, by a person in all their tenants, and to the platform.
create table keep.invitation_counts (
    counted     text    not null,
    day         date    not null,
    invitations integer not null,
    primary key (counted, day)
);

-- +goose Down
drop table keep.invitation_counts;
