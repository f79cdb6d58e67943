package queries

import (
	"context"
	"time"
)

// Invitation is an invitation to a role on the platform.
type Invitation struct {
	ID        string
	Email     string // empty if erased
	Role      string
	Status    string // pending, accepted, revoked or expired
	InvitedBy string
	CreatedAt time.Time
	ExpiresAt time.Time
}

const (
	invitationColumns = `i.id, coalesce(k.email, '') as email, i.role, ` + invitationStatus + ` as status, i.invited_by, i.created_at, i.expires_at`
	invitationStatus  = `case when i.status = 'pending' and i.expires_at <= now() then 'expired' else i.status end`
	invitationFrom    = `from read.invitations i left join keep.invitations k on k.id = i.id`
)

// Invitations lists the invitations to the platform, oldest first.
func (q *Queries) Invitations(ctx context.Context, page Page) (*List[Invitation], error) {
	return list[Invitation](ctx, q.db, invitationColumns, invitationFrom+` where true`, `i.created_at, i.id`, page)
}

// Invitation reads one invitation, or returns ErrNotFound.
func (q *Queries) Invitation(ctx context.Context, id string) (Invitation, error) {
	return one[Invitation](ctx, q.db, `select `+invitationColumns+` `+invitationFrom+` where i.id = $1`, id)
}

// HasPendingInvitation reports whether an address has a pending invitation.
func (q *Queries) HasPendingInvitation(ctx context.Context, email string) (invited bool, err error) {
	err = q.db.QueryRow(ctx, `select exists (select `+invitationFrom+`
		where lower(k.email collate "C") = lower($1 collate "C") and `+invitationStatus+` = 'pending')`, email).
		Scan(&invited)
	return invited, classify(err)
}
