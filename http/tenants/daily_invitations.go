package tenants

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
)

// invitationsPerDay returns a plan's daily quota of invitations.
func (a *API) invitationsPerDay(plan events.Plan) int {
	return cmp.Or(a.InvitationsPerDay, plan.Terms().InvitationsPerDay)
}

// platformInvitations limits invitations to the platform: the daily quota is the highest plan's.
var (
	platformInvitationsPerDay = events.EnterprisePlan.Terms().InvitationsPerDay
	platformInvitations       = []jobs.Window{jobs.PlatformInvitations(platformInvitationsPerDay)}
)

// tenantInvitations returns the limits of a person's invitations to a tenant: by its plan, and by the best plan among
// the person's tenants.
func (a *API) tenantInvitations(tenantID, userID string) []jobs.Window {
	plan := events.FreePlan
	if tenant, ok := a.Live.Tenant(tenantID); ok {
		plan = tenant.Plan(a.Now())
	}
	return []jobs.Window{
		jobs.TenantInvitations(tenantID, a.invitationsPerDay(plan)),
		jobs.PersonInvitations(userID, a.invitationsPerDay(a.BestPlan(userID))),
	}
}

// limitInvitations calls invite and counts the invitation for today, or returns an error if a window is full. Refused
// and repeated invitations do not count.
func limitInvitations[S any, P state.State[S]](
	ctx context.Context, a *API, windows []jobs.Window, cmd commands.Command[S],
	invite func() (writer.Done, error),
) (writer.Done, error) {
	if _, _, found, err := writer.Find[S, P](ctx, a.Writer, rest.CallMetadata(ctx), cmd); err != nil {
		return writer.Done{}, err
	} else if found {
		return invite()
	} else if err := rest.RequestOf(ctx).ReplayRefusal; err != nil {
		return writer.Done{}, err
	}
	now, holder := a.Now(), uuid.NewString()
	full, err := a.Windows.Take(ctx, now, holder, windows...)
	if err != nil {
		return writer.Done{}, err
	}
	if full != nil {
		return writer.Done{}, commands.TooManyToday(full.Max, now,
			fmt.Sprintf("the limit of %d invitations a day is reached", full.Max))
	}
	done, err := invite()
	if rest.IsRefusal(err) || done.Repeated {
		if failure := a.Windows.GiveBack(ctx, holder); failure != nil {
			rest.RequestOf(ctx).Log().Warn("a failed invitation could not be subtracted from today's count", "err", failure)
		}
	}
	return done, err
}
