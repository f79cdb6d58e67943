package tenants

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/events/state"
	"flagledger/http/rest"
)

// MembershipPath names a tenant that the caller was added or invited to.
type MembershipPath struct {
	ID string `path:"tenantId" example:"0198c5a0-9b1e-7d44-b0c7-5e1f0a9d8c31"`
	rest.ChangeInput
}

// addMembership adds the operations by which a person accepts or declines a membership.
func (a *API) addMembership(tag string) {
	const path = "/api/v1/tenants/{tenantId}/membership"
	accept := rest.Operation("POST", path+"/accept", "accept-membership", tag,
		"Stay in a tenant, or accept an invitation to it")
	accept.Description = "An extension. For a person who was added to a tenant and has not opened it yet, or whose " +
		"verified address was invited. The response to the sign-in lists both. Any call with the tenant's id in " +
		"X-Tenant-ID also accepts an addition."
	accept.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Person}, accept,
		func(ctx context.Context, in *MembershipPath) (*rest.SuccessOutput, error) {
			done, err := a.SignIn.AcceptMembership(ctx, rest.Runner[state.Tenant](a.Core), rest.PrincipalOf(ctx).Claims, in.ID)
			return rest.SuccessResponse(done), err
		})
	decline := rest.Operation("POST", path+"/decline", "decline-membership", tag,
		"Leave a tenant, or decline an invitation to it")
	decline.Description = "An extension. A member leaves, as with DELETE of their own membership; the last admin " +
		"cannot. Afterwards the person can only join again by accepting an invitation."
	decline.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Person}, decline,
		func(ctx context.Context, in *MembershipPath) (*rest.SuccessOutput, error) {
			leave := commands.LeaveTenant{
				RemoveMember: commands.RemoveMember{TenantRef: commands.TenantRef{TenantID: in.ID},
					ShutOut: a.blockedAdmins(in.ID)},
			}
			done, err := a.SignIn.DeclineMembership(ctx, rest.Runner[state.Tenant](a.Core), rest.PrincipalOf(ctx).Claims, leave)
			return rest.SuccessResponse(done), err
		})
}
