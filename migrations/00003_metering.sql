-- +goose Up

-- Evaluations by tenant and calendar month, as each run of a node counted them. A run writes its whole count again and again, so that a write
-- that is repeated adds nothing. Counts of past months are added up under the run of zeros.
create table keep.evaluations (
    tenant_id text   not null,
    month     date   not null, -- its first day
    run       uuid   not null,
    count     bigint not null,
    primary key (tenant_id, month, run)
);

-- +goose Down
drop table keep.evaluations;
