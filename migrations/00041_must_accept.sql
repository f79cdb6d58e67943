-- +goose Up

-- must_accept says that a pending member joins only once they accept: a sign-in leaves the row, and joins by the others.
alter table keep.pending_members add column must_accept boolean not null default false;

-- +goose Down
alter table keep.pending_members drop column must_accept;
