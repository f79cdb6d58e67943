-- +goose Up

-- Events of the payment provider that have been taken in. It sends one again for up to three days.
create table keep.payment_events (
    id          text primary key,
    received_at timestamptz not null
);
create index payment_events_age on keep.payment_events (received_at);

-- +goose Down
drop table keep.payment_events;
