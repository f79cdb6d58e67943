-- +goose Up

-- The salts of private segments, encrypted under FLAGLEDGER_SECRET. Without its salt, a segment's lists match nobody.
create table keep.segment_salts (
    id         text        primary key,
    tenant_id  text        not null,
    segment_id text        not null,
    encrypted  bytea       not null,
    created_at timestamptz not null default now()
);

create index segment_salts_of_segments on keep.segment_salts (tenant_id, segment_id);

-- +goose Down

drop table keep.segment_salts;
