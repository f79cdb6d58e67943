package models

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/projections"
)

var invitations = projections.Projection{
	Name:    "invitations",
	Version: 2, // with recorded times
	Tables:  []string{"invitations"},
	Schema: `
create table invitations (
    id         text        primary key,
    role       text        not null,
    status     text        not null, -- pending, also after expires_at
    invited_by text        not null,
    created_at timestamptz not null,
    expires_at timestamptz not null
);`,
	FactPrefixes: []string{"invitation."},
	Apply:        applyInvitation,
}

var (
	addInvitation = projections.NewStatement(
		"id text, role text, invited_by text, recorded timestamptz, expires_at timestamptz",
		`insert into invitations (id, role, status, invited_by, created_at, expires_at)
			select id, role, 'pending', invited_by, recorded, expires_at from given`,
	)
	extendInvitation = projections.NewStatement("id text, expires_at timestamptz",
		`update invitations i set expires_at = g.expires_at from given g where i.id = g.id`)
	endInvitation = projections.NewStatement("id text, status text",
		`update invitations i set status = g.status from given g where i.id = g.id`)
)

func applyInvitation(b *projections.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.InvitationFact)
	if !ok {
		return fmt.Errorf("%s in stream %s does not belong to an invitation", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.InvitationStream(""))
	switch fact := fact.(type) {
	case events.InvitationCreated:
		b.Queue(addInvitation, pgx.NamedArgs{
			"id": id, "role": fact.Role, "invited_by": e.Actor.ID, "recorded": e.At, "expires_at": fact.ExpiresAt,
		})
	case events.InvitationResent:
		b.Queue(extendInvitation, pgx.NamedArgs{"id": id, "expires_at": fact.ExpiresAt})
	case events.InvitationRevoked:
		b.Queue(endInvitation, pgx.NamedArgs{"id": id, "status": "revoked"})
	case events.InvitationAccepted:
		b.Queue(endInvitation, pgx.NamedArgs{"id": id, "status": "accepted"})
	}
	return nil
}
