package models

import (
	"fmt"
	"strings"

	"flagledger/events"
	"flagledger/projections"
)

var users = projections.Projection{
	Name:    "users",
	Version: 2, // with an index for the list of all
	Tables:  []string{"users"},
	Schema: `
create table users (
    id            text        primary key,
    platform_role text        not null, -- empty for most
    active        boolean     not null,
    erased        boolean     not null,
    created_at    timestamptz not null
);
create index on users (created_at, id);`,
	FactPrefixes: []string{"user."},
	Apply:        applyUser,
}

func applyUser(b *projections.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.UserFact)
	if !ok {
		return fmt.Errorf("%s in stream %s is no fact of a user", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.UserStream(""))
	switch fact := fact.(type) {
	case events.UserRegistered:
		b.Queue(`insert into users (id, platform_role, active, erased, created_at) values ($1, '', true, false, $2)`, id, e.Time)
	case events.SessionEnded, events.SessionsEnded:
	case events.PlatformRoleChanged:
		b.Queue(`update users set platform_role = $2 where id = $1`, id, fact.To)
	case events.UserDeactivated:
		b.Queue(`update users set active = false where id = $1`, id)
	case events.UserReactivated:
		b.Queue(`update users set active = true where id = $1`, id)
	case events.UserErased:
		b.Queue(`update users set active = false, erased = true, platform_role = '' where id = $1`, id)
	}
	return nil
}
