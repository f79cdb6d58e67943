package models

import (
	"fmt"
	"strings"

	"flagledger/events"
	"flagledger/projections"
)

var invitations = projections.Projection{
	Name:    "invitations",
	Version: 1,
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

func applyInvitation(b *projections.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.InvitationFact)
	if !ok {
		return fmt.Errorf("%s in stream %s is no fact of an invitation", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.InvitationStream(""))
	switch fact := fact.(type) {
	case events.InvitationCreated:
		b.Queue(`insert into invitations (id, role, status, invited_by, created_at, expires_at) values ($1, $2, 'pending', $3, $4, $5)`,
			id, fact.Role, e.Actor.ID, e.Time, fact.ExpiresAt)
	case events.InvitationResent:
		b.Queue(`update invitations set expires_at = $2 where id = $1`, id, fact.ExpiresAt)
	case events.InvitationRevoked:
		b.Queue(`update invitations set status = 'revoked' where id = $1`, id)
	case events.InvitationAccepted:
		b.Queue(`update invitations set status = 'accepted' where id = $1`, id)
	}
	return nil
}
