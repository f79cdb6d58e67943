-- +goose Up

-- watermark returns a time that the log has passed: what was recorded before it can be read, and no event is recorded before it from now on, unless the clock is
-- set back or a copied event keeps its time. It waits for the appends under way, whose row lock of the head includes a lock that conflicts with this one. Taking this one writes nothing.
-- +goose StatementBegin
create function events.watermark() returns timestamptz language plpgsql as $$
begin
    lock table events.head in exclusive mode;
    return clock_timestamp();
end $$;
-- +goose StatementEnd

-- +goose Down
drop function events.watermark;
