-- +goose Up

-- Which product tours people have completed. One that nobody has begun has no row.
create table keep.product_tours (
    user_id      text        not null,
    tour_key     text        not null,
    completed_at timestamptz, -- null: not completed
    created_at   timestamptz not null,
    updated_at   timestamptz not null,
    primary key (user_id, tour_key)
);

-- +goose Down
drop table keep.product_tours;
