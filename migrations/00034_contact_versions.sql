-- +goose Up

-- The version of the tenant's stream with which a part of its contact was changed last: a change that is made again, or late, takes the place of none that came after it.
alter table keep.tenant_contacts
    add column email_version bigint not null default 0,
    add column name_version  bigint not null default 0;

-- +goose Down
alter table keep.tenant_contacts drop column email_version, drop column name_version;
