-- +goose Up

-- Addresses are compared by their ASCII lower case alone, whatever the locale of the database: lower() of some folds other letters to them.
drop index keep.people_email;
create unique index people_email on keep.people (lower(email collate "C"));
drop index keep.pending_members_email;
create unique index pending_members_email on keep.pending_members (lower(email collate "C"), tenant_id);
drop index keep.invitations_email;
create index invitations_email on keep.invitations (lower(email collate "C"));
drop index keep.reset_requests_email;
create unique index reset_requests_email on keep.reset_requests (lower(email collate "C"), asked_at);
drop index keep.mailed_invitations_email;
create index mailed_invitations_email on keep.mailed_invitations (lower(email collate "C"), mailed_at);
drop index keep.sandbox_requests_email;
create unique index sandbox_requests_email on keep.sandbox_requests (lower(email collate "C"), asked_at);

-- +goose Down
drop index keep.people_email;
create unique index people_email on keep.people (lower(email));
drop index keep.pending_members_email;
create unique index pending_members_email on keep.pending_members (lower(email), tenant_id);
drop index keep.invitations_email;
create index invitations_email on keep.invitations (lower(email));
drop index keep.reset_requests_email;
create unique index reset_requests_email on keep.reset_requests (lower(email), asked_at);
drop index keep.mailed_invitations_email;
create index mailed_invitations_email on keep.mailed_invitations (lower(email), mailed_at);
drop index keep.sandbox_requests_email;
create unique index sandbox_requests_email on keep.sandbox_requests (lower(email), asked_at);
