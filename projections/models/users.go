package models

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/projections"
)

var users = projections.Projection{
	Name:    "users",
	Version: 3, // with recorded times
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

var (
	addUser = projections.NewStatement(
		"id text, recorded timestamptz",
		`insert into users (id, platform_role, active, erased, created_at)
		select id, '', true, false, recorded from given`,
	)
	setPlatformRole = projections.NewStatement("id text, role text",
		`update users u set platform_role = g.role from given g where u.id = g.id`)
	setActive = projections.NewStatement("id text, active boolean",
		`update users u set active = g.active from given g where u.id = g.id`)
	eraseUser = projections.NewStatement("id text",
		`update users u set active = false, erased = true, platform_role = '' from given g where u.id = g.id`)
)

func applyUser(b *projections.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.UserFact)
	if !ok {
		return fmt.Errorf("%s in stream %s does not belong to a user", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.UserStream(""))
	switch fact := fact.(type) {
	case events.UserRegistered:
		b.Queue(addUser, pgx.NamedArgs{"id": id, "recorded": e.At})
	case events.SessionEnded, events.SessionsEnded:
	case events.PlatformRoleChanged:
		b.Queue(setPlatformRole, pgx.NamedArgs{"id": id, "role": fact.To})
	case events.UserDeactivated:
		b.Queue(setActive, pgx.NamedArgs{"id": id, "active": false})
	case events.UserReactivated:
		b.Queue(setActive, pgx.NamedArgs{"id": id, "active": true})
	case events.UserErased:
		b.Queue(eraseUser, pgx.NamedArgs{"id": id})
	}
	return nil
}
