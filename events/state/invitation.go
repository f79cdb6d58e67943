package state

import (
	"time"

	"flagledger/events"
)

// Invitation is the state of an invitation's stream.
type Invitation struct {
	events.InvitationCreated
	InvitedBy  string
	Revoked    bool
	Accepted   bool
	AcceptedBy string
	AcceptedAt time.Time
	CreatedAt  time.Time
}

// Apply implements State.
func (i *Invitation) Apply(r events.Recorded) {
	switch fact := r.Fact.(events.InvitationFact).(type) {
	case events.InvitationCreated:
		*i = Invitation{InvitationCreated: fact, InvitedBy: r.Actor.ID, CreatedAt: r.At}
	case events.InvitationResent:
		i.ExpiresAt = fact.ExpiresAt
	case events.InvitationRevoked:
		i.Revoked = true
	case events.InvitationAccepted:
		i.Accepted, i.AcceptedBy, i.AcceptedAt = true, fact.UserID, r.Time
	}
}

// Clone implements State.
func (i *Invitation) Clone() Invitation { return *i }

// Size implements State.
func (i *Invitation) Size() int { return 512 }

// Status returns what has become of the invitation at a time: pending, accepted, revoked or expired.
func (i *Invitation) Status(now time.Time) string {
	switch {
	case i.Accepted:
		return "accepted"
	case i.Revoked:
		return "revoked"
	case !now.Before(i.ExpiresAt):
		return "expired"
	default:
		return "pending"
	}
}
