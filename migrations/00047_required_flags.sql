-- +goose Up

-- When a flag was last evaluated on behalf of another flag that requires it. Such evaluations are counted as the reason REQUIRED in the tables of 00033_flag_use.sql, and are not among the
-- evaluations there. Their outcomes count for outcome and varied_hour alone.
alter table keep.flag_uses add column last_required timestamptz;

-- +goose Down

alter table keep.flag_uses drop column last_required;
