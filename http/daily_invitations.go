package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/events"
	"flagledger/http/limit"
)

// invitationsPerDay is how many invitations a plan gives a day.
func (a *API) invitationsPerDay(plan events.Plan) int {
	return cmp.Or(a.InvitationsPerDay, plan.Terms().InvitationsPerDay)
}

// platformInvitations is how many invitations to the platform are made a day, as many as the highest plan gives a tenant.
var platformInvitations = jobs.InvitationBound{Counted: jobs.ToPlatform, PerDay: events.EnterprisePlan.Terms().InvitationsPerDay}

// tenantInvitations is how many invitations a tenant may make a day, on its plan.
func (a *API) tenantInvitations(tenantID string) jobs.InvitationBound {
	plan := events.FreePlan
	if tenant, ok := a.Live.Tenant(tenantID); ok {
		plan = tenant.Plan(a.Now())
	}
	return jobs.OfTenant(tenantID, a.invitationsPerDay(plan))
}

// limitInvitations calls invite and counts it for today: for bound, and in a tenant also for the caller. It refuses what is over one of these. What is
// refused or was made before does not count.
func limitInvitations[S any, P commands.State[S]](ctx context.Context, a *API, bound jobs.InvitationBound, cmd commands.Command[S], invite func() (commands.Done, error)) (commands.Done, error) {
	if _, _, found, err := commands.Find[S, P](ctx, a.Writer, by(ctx), cmd); err != nil {
		return commands.Done{}, err
	} else if found {
		return invite()
	} else if err := requestOf(ctx).replayOnly; err != nil {
		return commands.Done{}, err
	}
	now, userID := a.Now(), principalOf(ctx).claims.UserID
	bounds := []jobs.InvitationBound{bound}
	if bound.Counted != jobs.ToPlatform {
		bounds = append(bounds, jobs.OfPerson(userID, a.invitationsPerDay(a.bestPlan(userID))))
	}
	reached, err := a.DailyInvitations.Take(ctx, now, bounds...)
	if err != nil {
		return commands.Done{}, err
	}
	if reached != nil {
		tomorrow := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		left := limit.Spent(reached.PerDay, tomorrow.Sub(now))
		return commands.Done{}, tooManyRequests(left, fmt.Sprintf("%d invitations were made today, as many as a day may have; the next day begins at %s", reached.PerDay, tomorrow.Format(time.RFC3339)))
	}
	done, err := invite()
	if isRefusal(err) || done.Repeated {
		if failure := a.DailyInvitations.GiveBack(context.WithoutCancel(ctx), now, bounds...); failure != nil {
			requestOf(ctx).log().Warn("an invitation that was not made counts for today", "err", failure)
		}
	}
	return done, err
}

// isRefusal reports whether an error refuses a call that did nothing. After any other error it may have done what it was to do.
func isRefusal(err error) bool {
	if _, refused := errors.AsType[*problem](err); refused {
		return true
	}
	kind := commands.KindOf(err)
	return err != nil && kind != commands.Internal && kind != commands.Unavailable
}
