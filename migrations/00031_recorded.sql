-- +goose Up

-- When each event was recorded. There is no way down, and no need of one: older releases work with this schema.

-- Appends take the lock of the head first, so this does too.
alter table events.head add column recorded timestamptz not null default 'epoch'; -- the latest of all events; no event that is new is recorded before it

-- The default is for appends of an older release that wait while this runs.
alter table events.event add column recorded timestamptz default clock_timestamp();

-- For the facts that stand, the time of the node that made each is all that is known: a fact counts as recorded when its time, and those of all facts before it, had
-- come. A clock that was ahead must not hold the time of future facts.
alter table events.event disable trigger never_changed;
update events.event e set recorded = t.recorded
from (
    select position, least(max(coalesce((metadata ->> 'time')::timestamptz, 'epoch')) over (order by position), now()) recorded from events.event
) t
where e.position = t.position;
alter table events.event enable trigger never_changed;
alter table events.event alter column recorded set not null;
update events.head h set recorded = e.recorded from events.event e where e.position = h.position;

-- append applies several appends in one transaction, in their order. Append i is (streams[i], expected[i]) with the next counts[i] of the
-- events. It returns a row for each: the position of its last event, null where the stream is at another revision. An append whose ids stand
-- right behind the expected revision has been applied before and changes nothing.
--
-- An event is recorded now, and never before one ahead of it in the log, also where the clock was set back. One that is copied keeps its time: copied has it at the
-- index of the event, and null for events that are new; it is null where all are. Older releases call append without it.
drop function events.append;
-- +goose StatementBegin
create function events.append(
    streams text[], expected bigint[], counts int[],
    ids uuid[], names text[], versions smallint[], data json[], metadata json[], copied timestamptz[] default null
) returns table (applied bigint) language plpgsql as $$
declare
    last   bigint;
    start  bigint;
    first  int := 0; -- of this append's events, less one
    held   bigint;
    latest timestamptz;
begin
    -- At READ COMMITTED each statement below sees all that was committed before this lock was had.
    select h.position, h.recorded into start, latest from events.head h for update;
    last := start;
    latest := greatest(latest, clock_timestamp());
    for i in 1 .. cardinality(streams) loop
        select coalesce(max(e.revision), 0) into held from events.event e where e.stream = streams[i];
        if held = expected[i] then
            if copied is not null then
                latest := greatest(latest, (select max(c) from unnest(copied[first + 1 : first + counts[i]]) c));
            end if;
            insert into events.event (position, stream, revision, id, name, version, data, metadata, recorded)
            select last + n, streams[i], held + n, ids[first + n], names[first + n], versions[first + n], data[first + n], metadata[first + n],
                coalesce(copied[first + n], latest)
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
        update events.head h set position = last, recorded = latest;
        perform pg_notify('flagledger_events', last::text);
    end if;
end $$;
-- +goose StatementEnd
