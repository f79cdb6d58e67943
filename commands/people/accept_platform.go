package people

import (
	"context"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// AcceptToPlatform gives the caller the role that their verified address was invited to, or returns NotFound without a
// pending invitation. It writes the invitation's stream, then the person's. If the second write fails, a retry gives
// the role.
func (i *Inviter) AcceptToPlatform(
	ctx context.Context, by writer.By, c Claims, now time.Time,
) (state.Invitation, writer.Done, error) {
	who := invitationTaker{UserID: c.UserID, Listed: i.SuperUsers.Has(c.Email)}
	if c.EmailVerified {
		var err error
		if who.Invitations, err = i.Directory.PlatformInvitations(ctx, c.Email); err != nil {
			return state.Invitation{}, writer.Done{}, err
		}
	}
	return accept(ctx, i.Writer, by, who, now)
}

// invitationTaker is a person who accepts an invitation.
type invitationTaker struct {
	UserID      string
	Invitations []string // to their verified address, by id
	Listed      bool     // whether their address may be a super user's
}

// accept gives a person the role of their first pending invitation; a higher role stays. An accepted invitation counts
// as pending if the node died before it gave the role.
func accept(ctx context.Context, w *writer.Writer, by writer.By, who invitationTaker,
	now time.Time) (state.Invitation, writer.Done, error) {
	for _, id := range who.Invitations {
		accepting := commands.AcceptInvitation{InvitationRef: commands.InvitationRef{ID: id, Now: now}, UserID: who.UserID}
		found, err := writer.ReadInvitation(ctx, w, id)
		if err != nil {
			return state.Invitation{}, writer.Done{}, err
		}
		grant := commands.GrantInvited{UserRef: commands.UserRef{UserID: who.UserID}, Role: found.Role,
			Listed: who.Listed, AcceptedAt: now}
		if found.AcceptedBy != who.UserID {
			if accepting.Admit(found, "pending") != nil {
				continue
			}
			if _, err := writer.Check(ctx, w, writer.By{}, grant); err != nil {
				return state.Invitation{}, writer.Done{}, err
			}
		}
		accepted, done, err := writer.Do(ctx, w, by, accepting)
		if err != nil && commands.KindOf(err) != commands.Conflict {
			return state.Invitation{}, writer.Done{}, err
		}
		if accepted.AcceptedBy != who.UserID {
			continue
		}
		grant.AcceptedAt = accepted.AcceptedAt
		giving := by
		if err != nil {
			giving.Once = nil // a different request accepted this one
		}
		_, granted, err := writer.Do(ctx, w, giving, grant)
		if err != nil {
			return state.Invitation{}, writer.Done{}, err
		}
		if done.Position != (events.Position{}) || granted.Position != (events.Position{}) {
			done.Stale = done.Stale || granted.Stale
			return accepted, done, nil
		}
	}
	return state.Invitation{}, writer.Done{}, commands.Refuse(commands.NotFound,
		"there is no pending invitation to the caller's verified address")
}
