-- +goose Up

-- Whether the person has set the tour, and not only admins of a tenant of theirs: each have a bound.
alter table keep.product_tours add own boolean not null default true;

-- +goose Down
alter table keep.product_tours drop own;
