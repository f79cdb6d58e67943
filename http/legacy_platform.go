package http

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/http/tenants"
	"flagledger/queries"
)

// The legacy paths of the platform have other names for the roles.

var legacyRoles = map[string]events.PlatformRole{
	"super_admin":    events.SuperUser,
	"vendor_support": events.PlatformAdmin,
}

// legacyRoleName returns the legacy name of a role. viewer has no other name.
func legacyRoleName(role string) string {
	for word, meant := range legacyRoles {
		if string(meant) == role {
			return word
		}
	}
	return role
}

// checkLegacyRole adds an error for a role that the legacy paths do not have.
func checkLegacyRole(wrong map[string]string, role string) {
	if legacyRoles[role] == "" {
		wrong["role"] = "must be one of super_admin, vendor_support"
	}
}

// legacyUserBody is a person with the legacy name of their role.
type legacyUserBody struct {
	PlatformUserBody
	Role *string `json:"role" nullable:"true" enum:"viewer,vendor_support,super_admin" doc:"The platform role; null for most people" example:"vendor_support"`
}

func showLegacyUser(u PlatformUserBody) legacyUserBody {
	body := legacyUserBody{PlatformUserBody: u}
	if u.Role != nil {
		body.Role = new(legacyRoleName(*u.Role))
	}
	return body
}

type legacyUserOutput struct {
	rest.Changed
	Body legacyUserBody
}

// legacyInvitation is an invitation with the legacy name of its role.
type legacyInvitation struct {
	tenants.InvitationBody
	Role string `json:"role" enum:"super_admin,vendor_support" example:"vendor_support"`
}

type legacyInvitationOutput struct {
	rest.Changed
	Location string `header:"Location"`
	Body     legacyInvitation
}

type legacyRoleBody struct {
	Role string `json:"role" enum:"super_admin,vendor_support" example:"vendor_support"`
}

type legacyInvitationBody struct {
	Email string `json:"email" maxLength:"254" example:"ops@example.com"`
	Role  string `json:"role" enum:"super_admin,vendor_support" example:"vendor_support"`
}

type legacyInviteBody struct {
	Email string `json:"email" maxLength:"254" example:"dev@example.com"`
	Role  string `json:"role" enum:"admin,user" doc:"admin invites to the platform, user to the tenant of the call, as a viewer" example:"user"`
}

func (a *API) addLegacyPlatform() {
	users := rest.LegacyOperation("GET", "/admin/users", "legacy-list-users", "All people")
	rest.Register(
		a.Core,
		rest.PlatformAccess(events.PlatformAdmin),
		users,
		func(ctx context.Context, in *rest.PageInput) (*rest.ListOutput[legacyUserBody], error) {
			list, err := a.Queries.PlatformUsers(ctx, "", in.Page())
			return rest.ListResponse(ctx, *in, list, err,
				func(u queries.PlatformUser) legacyUserBody { return showLegacyUser(showPlatformUser(u)) })
		},
	)
	change := rest.LegacyOperation("PATCH", "/admin/users/{userId}/role", "legacy-change-platform-role",
		"Give a person a platform role")
	change.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, rest.RoleAccess, change, func(ctx context.Context, in *struct {
		PlatformUserPath
		Body legacyRoleBody
	}) (*legacyUserOutput, error) {
		wrong := map[string]string{}
		checkLegacyRole(wrong, in.Body.Role)
		if err := rest.AddBodyErrors(ctx, rest.WrongFields(wrong)); err != nil {
			return nil, err
		}
		out, err := a.changePlatformRole(ctx, in.UserID, new(string(legacyRoles[in.Body.Role])))
		if err != nil {
			return nil, err
		}
		return &legacyUserOutput{Changed: out.Changed, Body: showLegacyUser(out.Body)}, nil
	})
	create := rest.LegacyOperation("POST", "/admin/invitations", "legacy-create-invitation",
		"Invite a person to a platform role")
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.PlatformAccess(events.SuperUser), create, func(ctx context.Context, in *struct {
		rest.ChangeInput
		Body legacyInvitationBody
	}) (*legacyInvitationOutput, error) {
		address, wrong := tenants.ReadAddress(in.Body.Email)
		checkLegacyRole(wrong, in.Body.Role)
		if err := rest.AddBodyErrors(ctx, rest.WrongFields(wrong)); err != nil {
			return nil, err
		}
		out, err := a.tenants.Invite(ctx, address, commands.CreateInvitation{
			ID: rest.NewID(ctx), Role: legacyRoles[in.Body.Role], Legacy: true, Listed: a.SuperUsers.Has(address),
		})
		if err != nil {
			return nil, err
		}
		return &legacyInvitationOutput{
			Changed:  out.Changed,
			Location: out.Location,
			Body:     legacyInvitation{out.Body, in.Body.Role},
		}, nil
	})
	invite := rest.LegacyOperation("POST", "/admin/invite", "legacy-invite",
		"Invite a person to the platform, or to a tenant")
	invite.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Person}, invite, a.legacyInvite)
}

// legacyInvite invites a person. It requires the same role as the operation that replaces it.
func (a *API) legacyInvite(ctx context.Context, in *struct {
	rest.TenantInput
	rest.ChangeInput
	Body legacyInviteBody
}) (*rest.SuccessOutput, error) {
	p := rest.PrincipalOf(ctx)
	address, wrong := tenants.ReadAddress(in.Body.Email)
	var changed rest.Changed
	switch in.Body.Role {
	case "admin":
		if err := a.AuthorizeOnPlatform(p, events.SuperUser); err != nil {
			return nil, err
		}
		if err := rest.WrongFields(wrong); err != nil {
			return nil, err
		}
		out, err := a.tenants.Invite(ctx, address, commands.CreateInvitation{ID: rest.NewID(ctx), Role: events.PlatformAdmin})
		if err != nil {
			return nil, err
		}
		changed = out.Changed
	case "user":
		if err := a.Authorize(p, rest.Access{Who: rest.Admin}, in.TenantID); err != nil {
			return nil, err
		}
		out, err := a.tenants.InviteMember(ctx, p.Tenant.ID(), tenants.NewMemberBody{Email: in.Body.Email,
			Role: string(events.ViewerRole)})
		if err != nil {
			return nil, err
		}
		changed = out.Changed
	default:
		wrong["role"] = "must be one of admin, user"
		return nil, rest.Invalid(wrong)
	}
	return &rest.SuccessOutput{Changed: changed, Body: rest.Success{Success: true}}, nil
}
