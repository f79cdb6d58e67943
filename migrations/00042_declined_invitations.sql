-- +goose Up

-- Who has declined an invitation of a tenant. The facts do not tell: the tenant does not know them.
create table keep.declined_invitations (
    tenant_id text not null,
    user_id   text not null,
    primary key (tenant_id, user_id)
);
create index on keep.declined_invitations (user_id);

-- +goose Down
drop table keep.declined_invitations;
