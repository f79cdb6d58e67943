-- +goose Up

-- The Ed25519 key that signs the checkpoints of all tenants' audit trails, encrypted under the secret.
create table keep.audit_key (
    only_row    boolean primary key default true check (only_row),
    verifier    text  not null, -- the verifier key (https://c2sp.org/signed-note)
    private_key bytea not null
);

-- The checkpoints that were signed. None is removed: each says what the trail of a tenant was at a size.
create table keep.audit_checkpoints (
    tenant_id text        not null,
    size      bigint      not null,
    root      bytea       not null,
    signed_at timestamptz not null default now(),
    primary key (tenant_id, size)
);

-- +goose Down
drop table keep.audit_checkpoints, keep.audit_key;
