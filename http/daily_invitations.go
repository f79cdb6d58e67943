package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/events"
)

// invitationsPerDay is how many invitations a plan gives a day.
func (a *API) invitationsPerDay(plan events.Plan) int {
	return cmp.Or(a.InvitationsPerDay, plan.Terms().InvitationsPerDay)
}

// platformInvitations bounds invitations to the platform: to as many a day as the highest plan gives a tenant.
var (
	platformInvitationsPerDay = events.EnterprisePlan.Terms().InvitationsPerDay
	platformInvitations       = []jobs.InvitationBound{jobs.PlatformInvitationBound(platformInvitationsPerDay)}
)

// tenantInvitations bounds the invitations that a person makes to a tenant: by its plan, and by the best plan among the
// person's tenants.
func (a *API) tenantInvitations(tenantID, userID string) []jobs.InvitationBound {
	plan := events.FreePlan
	if tenant, ok := a.Live.Tenant(tenantID); ok {
		plan = tenant.Plan(a.Now())
	}
	return []jobs.InvitationBound{
		jobs.TenantInvitationBound(tenantID, a.invitationsPerDay(plan)),
		jobs.PersonInvitationBound(userID, a.invitationsPerDay(a.bestPlan(userID))),
	}
}

// limitInvitations calls invite and counts the invitation for today, or refuses what is over one of bounds. What is
// refused or was made before does not count.
func limitInvitations[S any, P commands.State[S]](
	ctx context.Context, a *API, bounds []jobs.InvitationBound, cmd commands.Command[S],
	invite func() (commands.Done, error),
) (commands.Done, error) {
	if _, _, found, err := commands.Find[S, P](ctx, a.Writer, by(ctx), cmd); err != nil {
		return commands.Done{}, err
	} else if found {
		return invite()
	} else if err := requestOf(ctx).replayRefusal; err != nil {
		return commands.Done{}, err
	}
	now := a.Now()
	reached, err := a.DailyInvitations.Take(ctx, now, bounds...)
	if err != nil {
		return commands.Done{}, err
	}
	if reached != nil {
		return commands.Done{}, commands.TooManyToday(reached.PerDay, now,
			fmt.Sprintf("%d invitations were made today, as many as a day may have", reached.PerDay))
	}
	done, err := invite()
	if isRefusal(err) || done.Repeated {
		if failure := a.DailyInvitations.GiveBack(context.WithoutCancel(ctx), now, bounds...); failure != nil {
			requestOf(ctx).log().Warn("an invitation that was not made counts for today", "err", failure)
		}
	}
	return done, err
}

// isRefusal reports whether an error refuses a call that did nothing. After any other error it may have done what it
// was to do.
func isRefusal(err error) bool {
	if _, refused := errors.AsType[*problem](err); refused {
		return true
	}
	kind := commands.KindOf(err)
	return err != nil && kind != commands.Internal && kind != commands.Unavailable
}
