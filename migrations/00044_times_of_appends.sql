-- +goose Up

-- append gives each append a time of its own: a microsecond after the one before it, at least. Until now the appends of one transaction had the same time.
--
-- There is no way down, and no need of one: older releases work with this schema.

-- +goose StatementBegin
create or replace function events.append(
    streams text[], expected bigint[], counts int[],
    ids uuid[], names text[], versions smallint[], data json[], metadata json[], copied timestamptz[] default null, accept timestamptz default null
) returns table (applied bigint, recorded_at timestamptz) language plpgsql as $$
declare
    last   bigint;
    start  bigint;
    first  int := 0; -- of this append's events, less one
    held   bigint;
    latest timestamptz;
begin
    -- At READ COMMITTED each statement below sees all that was committed before this lock was had.
    select h.position, h.recorded into start, latest from events.head h for update;
    perform pg_advisory_xact_lock(hashtext('flagledger append'));
    if (select max(c) from unnest(copied) c) > greatest(clock_timestamp() + interval '5 minutes', accept) then
        raise exception 'a copied event is recorded in the future' using errcode = 'FL001';
    end if;
    last := start;
    for i in 1 .. cardinality(streams) loop
        select coalesce(max(e.revision), 0) into held from events.event e where e.stream = streams[i];
        if held = expected[i] then
            latest := greatest(latest + interval '1 microsecond', clock_timestamp());
            if copied is not null then
                latest := greatest(latest, (select max(c) from unnest(copied[first + 1 : first + counts[i]]) c));
            end if;
            insert into events.event (position, stream, revision, id, name, version, data, metadata, recorded)
            select last + n, streams[i], held + n, ids[first + n], names[first + n], versions[first + n], data[first + n], metadata[first + n],
                coalesce(copied[first + n], latest)
            from generate_series(1, counts[i]) n;
            last := last + counts[i];
            applied := last;
            recorded_at := latest;
        else
            select max(e.position), max(e.recorded) into applied, recorded_at
            from events.event e
            where e.stream = streams[i] and e.revision between expected[i] + 1 and expected[i] + counts[i]
            having array_agg(e.id order by e.revision) = ids[first + 1 : first + counts[i]];
        end if;
        first := first + counts[i];
        return next;
    end loop;
    if last > start then
        update events.head h set position = last, recorded = latest;
        perform pg_notify('flagledger_events', last::text);
    end if;
end $$;
-- +goose StatementEnd
