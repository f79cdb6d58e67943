-- +goose Up

-- What a mail is for: an address gets five of each purpose within an hour, so that nobody uses up the places of invitations by asking for sandboxes.
alter table keep.mailed_invitations add column purpose text not null default 'invitation' check (purpose in ('invitation', 'sandbox'));

-- +goose Down
alter table keep.mailed_invitations drop column purpose;
