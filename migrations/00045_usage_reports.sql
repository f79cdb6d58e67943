-- +goose Up

-- Reports of usage that were taken, so that one that is sent again counts once. They are removed after two days.
create table keep.usage_reports (
    tenant_id text        not null,
    caller    text        not null, -- a client's or an evaluation key's id
    report_id text        not null,
    taken_at  timestamptz not null,
    primary key (tenant_id, caller, report_id)
);

create index usage_reports_taken_at on keep.usage_reports (taken_at);

-- Reports have one run (ffffffff-...) in the tables of 00033_flag_use.sql, and add to its rows where other runs replace theirs. Two columns say more there:
--
--   reasons   {"RULE_MATCH": evaluations, "REPORTED": those of them that were reported}
--   clients   {"<client's id>": [evaluations, the last second of the Unix time, those of the evaluations that were reported]}

-- add_counts adds up the numbers of two objects by name.
-- +goose StatementBegin
create function keep.add_counts(a text, b text) returns text language sql immutable as $$
    select coalesce(json_object_agg(key, n), '{}')::text
    from (
        select key, sum(value::bigint)::bigint as n
        from (select * from json_each_text(a::json) union all select * from json_each_text(b::json)) c
        group by key
    ) s
$$;
-- +goose StatementEnd

-- add_outcomes is add_counts that leaves the most frequent names and counts all others as the rest.
-- +goose StatementBegin
create function keep.add_outcomes(a text, b text, most int, rest text) returns text language sql immutable as $$
    select coalesce(json_object_agg(name, n), '{}')::text
    from (
        select case when place > most then rest else key end as name, sum(n)::bigint as n
        from (
            select key, value::bigint as n, row_number() over (order by key = rest, value::bigint desc, key) as place
            from json_each_text(keep.add_counts(a, b)::json)
        ) ranked
        group by name
    ) s
$$;
-- +goose StatementEnd

-- add_clients adds up what clients did, and leaves the most active ones.
-- +goose StatementBegin
create function keep.add_clients(a text, b text, most int) returns text language sql immutable as $$
    select coalesce(json_object_agg(key, json_build_array(n, seen, reported)), '{}')::text
    from (
        select key, sum((value ->> 0)::bigint)::bigint as n, max((value ->> 1)::bigint) as seen,
            sum(coalesce((value ->> 2)::bigint, 0))::bigint as reported
        from (select * from json_each(a::json) union all select * from json_each(b::json)) c
        group by key order by 2 desc, key limit most
    ) s
$$;
-- +goose StatementEnd

-- +goose Down

drop function keep.add_clients;
drop function keep.add_outcomes;
drop function keep.add_counts;
drop table keep.usage_reports;
