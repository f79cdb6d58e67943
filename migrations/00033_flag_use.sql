-- +goose Up

-- How often flags are asked for, and what they serve. A run is what counts in a node from its start on. A run writes its whole count of an hour again and again, so that a write that
-- is repeated adds nothing; readers add up the runs.
--
-- A life is the revision of the FlagCreated that a flag began with: a key that is used again begins another. The environment is an id, '' where a tenant uses so many flags in so many
-- environments that a node did not tell them apart.
--
--   outcomes  {"<outcome>": evaluations}; outcome stands in flag_outcomes, or is 'rest' for all beyond the first 20
--   reasons   {"RULE_MATCH": evaluations}
--   clients   {"<client's id, '' for people>": [evaluations, the last second of the Unix time]}
create table keep.flag_hours (
    tenant_id      text               not null,
    hour           timestamptz        not null, -- its beginning
    flag_key       text collate "C"   not null,
    life           bigint             not null,
    environment_id text               not null,
    run            uuid               not null,
    evaluations    bigint             not null,
    prefetches     bigint             not null,
    reasons        json               not null,
    outcomes       json               not null,
    clients        json               not null,
    primary key (tenant_id, hour, flag_key, life, environment_id, run)
) with (fillfactor = 50); -- rows of the running hour change every few seconds

-- The runs' hours added up, made again while hours of the day may still come.
create table keep.flag_days (
    tenant_id      text             not null,
    day            date             not null,
    flag_key       text collate "C" not null,
    life           bigint           not null,
    environment_id text             not null,
    evaluations    bigint           not null,
    prefetches     bigint           not null,
    reasons        json             not null,
    outcomes       json             not null,
    clients        json             not null,
    primary key (tenant_id, day, flag_key, life, environment_id)
);

-- The same of all flags of a tenant, those that were deleted too. Prefetches are calls.
create table keep.tenant_hours (
    tenant_id      text        not null,
    hour           timestamptz not null,
    environment_id text        not null,
    run            uuid        not null,
    evaluations    bigint      not null,
    prefetches     bigint      not null,
    reasons        json        not null,
    clients        json        not null,
    primary key (tenant_id, hour, environment_id, run)
) with (fillfactor = 50);

create table keep.tenant_days (
    tenant_id      text   not null,
    day            date   not null,
    environment_id text   not null,
    evaluations    bigint not null,
    prefetches     bigint not null,
    reasons        json   not null,
    clients        json   not null,
    primary key (tenant_id, day, environment_id)
);

-- Days whose hours have all been added up. What comes later takes its day out.
create table keep.use_days (
    day date primary key
);

-- What hours and days name as outcomes: a variation with the value that it had, or a value alone.
create table keep.flag_outcomes (
    tenant_id      text             not null,
    flag_key       text collate "C" not null,
    life           bigint           not null,
    outcome        text             not null,
    variation_id   text,            -- null with variation_name for a value alone
    variation_name text,
    value          json             not null,
    primary key (tenant_id, flag_key, life, outcome)
);

-- When and how a flag was last used, for lists of flags and what follows from it: one row for all runs, which is never taken back.
create table keep.flag_uses (
    tenant_id       text             not null,
    flag_key        text collate "C" not null,
    life            bigint           not null,
    environment_id  text             not null,
    last_evaluated  timestamptz,     -- null before the first
    last_prefetched timestamptz,
    outcome         text,            -- the last that was seen; null without evaluations
    outcome_hour    timestamptz,     -- the latest hour in which it was
    varied_hour     timestamptz,     -- the latest hour in which there was another; null without one
    primary key (tenant_id, flag_key, life, environment_id)
) with (fillfactor = 50);

-- +goose Down
drop table keep.flag_uses, keep.flag_outcomes, keep.use_days, keep.tenant_days, keep.tenant_hours, keep.flag_days, keep.flag_hours;
