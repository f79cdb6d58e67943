-- +goose Up

-- Limits that all nodes count together: a row for each mail or invitation, until it counts no more. holder is the mail's job or an id of the invitation.
--
-- Nodes of the previous release go on with mailed_invitations and invitation_counts, which a later release drops. They and newer nodes do not count each other's,
-- so twice as many invitations may come on the day of the change, and twice as many mails to an address in its hour.
create table keep.window_slots (
    kind   text        not null,
    key    text        not null, -- a person's address in lower case if kind is of mails; otherwise an id
    holder text        not null,
    ends   timestamptz not null,
    primary key (kind, key, holder)
);
create index window_slots_holder on keep.window_slots (holder);

-- +goose Down
drop table keep.window_slots;
