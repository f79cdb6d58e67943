package http

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/events/state"
)

// MembershipPath names a tenant that the caller was added or invited to.
type MembershipPath struct {
	ID string `path:"tenantId" example:"0198c5a0-9b1e-7d44-b0c7-5e1f0a9d8c31"`
	ChangeInput
}

// addMembership adds the operations by which a person accepts or declines a membership.
func (a *API) addMembership(tag string) {
	const path = "/api/v1/tenants/{tenantId}/membership"
	accept := operation("POST", path+"/accept", "accept-membership", tag,
		"Stay in a tenant, or accept an invitation to it")
	accept.Description = "An extension. For a person who was added to a tenant and has not opened it yet, or whose " +
		"verified address was invited. The response to the sign-in lists both. Any call with the tenant's id in " +
		"X-Tenant-ID also accepts an addition."
	accept.Errors = []int{http.StatusConflict}
	register(a, access{who: person}, accept, func(ctx context.Context, in *MembershipPath) (*successOutput, error) {
		done, err := a.SignIn.AcceptMembership(ctx, runner[state.Tenant](a), principalOf(ctx).claims, in.ID)
		return successResponse(done), err
	})
	decline := operation("POST", path+"/decline", "decline-membership", tag,
		"Leave a tenant, or decline an invitation to it")
	decline.Description = "An extension. A member leaves, as with DELETE of their own membership; the last admin " +
		"cannot. Afterwards the person can only join again by accepting an invitation."
	decline.Errors = []int{http.StatusConflict}
	register(a, access{who: person}, decline, func(ctx context.Context, in *MembershipPath) (*successOutput, error) {
		leave := commands.LeaveTenant{
			RemoveMember: commands.RemoveMember{TenantRef: commands.TenantRef{TenantID: in.ID}, ShutOut: a.shutOutAdmins(in.ID)},
		}
		done, err := a.SignIn.DeclineMembership(ctx, runner[state.Tenant](a), principalOf(ctx).claims, leave)
		return successResponse(done), err
	})
}
