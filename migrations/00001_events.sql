-- +goose Up
create schema events;

-- The log. A row is written once and never changed; positions have no gaps.
create table events.event (
    position bigint primary key,
    stream   text     not null,
    revision bigint   not null,
    id       uuid     not null,
    name     text     not null,
    version  smallint not null,
    data     json     not null, -- json, not jsonb: numbers keep their spelling
    metadata json     not null,
    unique (stream, revision)
);

-- One row: the position of the last event. Its lock puts all appends in one order, so that a subscriber which has seen a position
-- has seen all before it.
create table events.head (
    one      boolean primary key default true check (one),
    position bigint not null
);
insert into events.head (position) values (0);

-- +goose StatementBegin
create function events.refuse() returns trigger language plpgsql as $$
begin
    raise exception 'events are facts: they are never changed (%)', lower(tg_op);
end $$;
-- +goose StatementEnd
create trigger never_changed before update or delete or truncate on events.event
    for each statement execute function events.refuse();

-- append applies several appends in one transaction, in their order. Append i is (streams[i], expected[i]) with the next counts[i] of the
-- events. It returns a row for each: the position of its last event, null where the stream is at another revision. An append whose ids stand
-- right behind the expected revision has been applied before and changes nothing.
-- +goose StatementBegin
create function events.append(
    streams text[], expected bigint[], counts int[],
    ids uuid[], names text[], versions smallint[], data json[], metadata json[]
) returns table (applied bigint) language plpgsql as $$
declare
    last  bigint;
    start bigint;
    first int := 0; -- of this append's events, less one
    held  bigint;
begin
    -- At READ COMMITTED each statement below sees all that was committed before this lock was had.
    select h.position into start from events.head h for update;
    last := start;
    for i in 1 .. cardinality(streams) loop
        select coalesce(max(e.revision), 0) into held from events.event e where e.stream = streams[i];
        if held = expected[i] then
            insert into events.event (position, stream, revision, id, name, version, data, metadata)
            select last + n, streams[i], held + n, ids[first + n], names[first + n], versions[first + n], data[first + n], metadata[first + n]
            from generate_series(1, counts[i]) n;
            last := last + counts[i];
            applied := last;
        else
            select max(e.position) into applied
            from events.event e
            where e.stream = streams[i] and e.revision between expected[i] + 1 and expected[i] + counts[i]
            having array_agg(e.id order by e.revision) = ids[first + 1 : first + counts[i]];
        end if;
        first := first + counts[i];
        return next;
    end loop;
    if last > start then
        update events.head h set position = last;
        perform pg_notify('flagledger_events', last::text);
    end if;
end $$;
-- +goose StatementEnd

-- +goose Down
drop schema events cascade;
