-- +goose Up

-- Until when a new password that has been prepared may be set; null where none is. Sessions that begin until then end with the old password.
alter table keep.passwords add column changing_until timestamptz;

-- +goose Down
alter table keep.passwords drop column changing_until;
