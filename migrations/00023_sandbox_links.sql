-- +goose Up

-- A link is mailed anew at each attempt, and the mails of earlier ones may have arrived: all of them are good.
alter table keep.sandbox_requests add column hashes bytea[] not null default '{}'; -- SHA-256; empty until the link is mailed
update keep.sandbox_requests set hashes = array[hash] where hash is not null;
alter table keep.sandbox_requests drop column hash;
create index sandbox_requests_hashes on keep.sandbox_requests using gin (hashes);

-- +goose Down
alter table keep.sandbox_requests add column hash bytea unique;
update keep.sandbox_requests set hash = hashes[array_upper(hashes, 1)];
alter table keep.sandbox_requests drop column hashes;
