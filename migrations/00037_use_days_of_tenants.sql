-- +goose Up

-- Days are added up tenant by tenant, so that none waits for another, and stay known as long as their counts are kept. Those of before are added up once more.
drop table keep.use_days;
create table keep.use_days (
    tenant_id text not null,
    day       date not null,
    primary key (tenant_id, day)
);

-- +goose Down
drop table keep.use_days;
create table keep.use_days (
    day date primary key
);
