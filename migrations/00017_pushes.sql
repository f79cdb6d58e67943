-- +goose Up

-- Notifications that are still to be pushed to a device.
create table keep.pushes (
    device_id       uuid not null references keep.devices on delete cascade,
    notification_id text not null references keep.notifications on delete cascade,
    primary key (device_id, notification_id)
);
create index pushes_notification on keep.pushes (notification_id);

-- +goose Down
drop table keep.pushes;
