package http

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/accounts"
	"flagledger/http/flags"
	"flagledger/http/rest"
	"flagledger/http/tenants"
	"flagledger/queries"
)

// PlatformUserBody is a person, as shown to operators.
type PlatformUserBody struct {
	UserID         string                    `json:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	Email          string                    `json:"email" example:"dev@example.com"`
	DisplayName    string                    `json:"displayName" example:"Dee Veloper"`
	Role           *string                   `json:"role" nullable:"true" enum:"viewer,admin,super_user" doc:"The platform role; null for most people" example:"admin"`
	Active         bool                      `json:"active" doc:"false if deactivated" example:"true"`
	CreatedAt      rest.RecordedTime         `json:"createdAt"`
	LastAccessedAt *rest.Timestamp           `json:"lastAccessedAt" nullable:"true"`
	Tenants        []accounts.MembershipBody `json:"tenants"`
}

func showPlatformUser(u queries.PlatformUser) PlatformUserBody {
	body := PlatformUserBody{
		UserID:         u.UserID,
		Email:          u.Email,
		DisplayName:    u.DisplayName,
		Role:           rest.TextOrNull(u.Role),
		Active:         u.Active,
		CreatedAt:      rest.RecordedTime(u.CreatedAt),
		LastAccessedAt: (*rest.Timestamp)(u.LastAccessedAt),
		Tenants:        make([]accounts.MembershipBody, len(u.Tenants)),
	}
	for i, m := range u.Tenants {
		body.Tenants[i] = accounts.MembershipBody(m)
	}
	if !u.Known {
		body.DisplayName = rest.ErasedUser
	}
	return body
}

type platformUserOutput struct {
	rest.Changed
	Body PlatformUserBody
}

// platformTenantBody is a tenant, as shown to operators.
type platformTenantBody struct {
	tenants.TenantBody
	Usage  flags.UsageBody `json:"usage" doc:"Evaluations lag by up to five seconds"`
	Active bool            `json:"active" doc:"false if deleted" example:"true"`
}

// PlatformUserPath names a person.
type PlatformUserPath struct {
	rest.ChangeInput
	UserID string `path:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
}

func (a *API) addPlatform() {
	const tag, users = "Platform", "/api/v1/admin/users"
	listUsers := func(ctx context.Context, in *struct {
		rest.PageInput
		Search string `query:"q" maxLength:"200" doc:"Part of the address or the display name, case-insensitive, or an id"`
	}) (*rest.ListOutput[PlatformUserBody], error) {
		list, err := a.Queries.PlatformUsers(ctx, in.Search, in.Page())
		return rest.ListResponse(ctx, in.PageInput, list, err, showPlatformUser)
	}
	own := rest.Operation("GET", "/api/v1/admin/role", "get-own-platform-role", tag, "The caller's platform role")
	own.Description = "Everyone who is signed in may call it; most people have no platform role."
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Person, Unverified: true},
		own,
		func(ctx context.Context, _ *struct{}) (*ownRoleOutput, error) {
			out := &ownRoleOutput{}
			out.Body.Role = rest.TextOrNull(string(a.PlatformRole(rest.PrincipalOf(ctx).Claims)))
			return out, nil
		},
	)
	rest.Register(a.Core, rest.PlatformAccess(events.PlatformAdmin), rest.Operation("GET", users, "list-users",
		tag, "All people"), listUsers)
	rest.Register(a.Core, rest.PlatformAccess(events.SuperUser),
		rest.Operation("GET", users+"/system", "list-system-users", tag, "All people, for super users"), listUsers)
	rest.Register(a.Core, rest.PlatformAccess(events.PlatformViewer),
		rest.Operation("GET", "/api/v1/admin/tenants", "list-all-tenants", tag, "All tenants with their usage"),
		a.listAllTenants)

	deactivate := rest.Operation("PATCH", users+"/{userId}/deactivate", "deactivate-user", tag,
		"Deactivate a person everywhere, including live tokens")
	deactivate.Description = "Sessions and mailed links end. After a reactivation the person must sign in again."
	deactivate.Errors = []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(
		a.Core,
		rest.PlatformAccess(events.SuperUser),
		deactivate,
		func(ctx context.Context, in *PlatformUserPath) (*platformUserOutput, error) {
			if in.UserID == rest.PrincipalOf(ctx).Claims.UserID {
				return nil, rest.NewProblem(http.StatusConflict, "you cannot deactivate yourself")
			}
			state, done, err := people.Deactivate(ctx, a.Writer, a.Identity, rest.Runner[state.User](a.Core),
				rest.CallMetadata(ctx),
				in.UserID)
			if err != nil {
				return nil, err
			}
			return a.showUser(ctx, in.UserID, state, done)
		},
	)
	reactivate := rest.Operation("PATCH", users+"/{userId}/reactivate", "reactivate-user", tag, "Reactivate a person")
	reactivate.Errors = []int{http.StatusNotFound}
	rest.Register(
		a.Core,
		rest.PlatformAccess(events.SuperUser),
		reactivate,
		func(ctx context.Context, in *PlatformUserPath) (*platformUserOutput, error) {
			state, done, err := people.Reactivate(ctx, a.Writer, a.Identity, rest.Runner[state.User](a.Core),
				rest.CallMetadata(ctx),
				in.UserID)
			if err != nil {
				return nil, err
			}
			return a.showUser(ctx, in.UserID, state, done)
		},
	)
	change := rest.Operation("PATCH", users+"/{userId}/role", "change-platform-role", tag,
		"Give a person a platform role; null removes it")
	change.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, rest.RoleAccess, change, func(ctx context.Context, in *struct {
		PlatformUserPath
		Body platformRoleBody
	}) (*platformUserOutput, error) {
		if role := in.Body.Role; !role.Null && role.Sent != nil && *role.Sent == "" {
			return nil,
				rest.Invalid(map[string]string{"role": "must be one of viewer, admin, super_user; null removes the role"})
		}
		return a.changePlatformRole(ctx, in.UserID, in.Body.Role.Sent)
	})
}

type platformRoleBody struct {
	Role rest.Optional[string] `json:"role" enum:"viewer,admin,super_user" example:"admin" nullable:"true"`
}

type ownRoleOutput struct {
	Body struct {
		Role *string `json:"role" nullable:"true" enum:"viewer,admin,super_user" doc:"null without a role, and while the caller's address is not verified" example:"admin"`
	}
}

func (a *API) listAllTenants(ctx context.Context, in *struct {
	rest.PageInput
	Search string `query:"q" maxLength:"200" doc:"Part of the name or of the contact address, case-insensitive, or an id"`
}) (*rest.ListOutput[platformTenantBody], error) {
	list, err := a.Queries.PlatformTenants(ctx, in.Search, in.Page())
	return rest.ListResponse(ctx, in.PageInput, list, err, func(t queries.PlatformTenant) platformTenantBody {
		return platformTenantBody{
			TenantBody: a.tenants.ShowTenant(t.Tenant),
			Usage:      flags.UsageBody{Flags: t.Flags, Evaluations: t.Evaluations, Users: t.Users},
			Active:     t.Active,
		}
	})
}

// changePlatformRole gives a person a role; nil means that the body has none.
func (a *API) changePlatformRole(ctx context.Context, userID string, role *string) (*platformUserOutput, error) {
	if role == nil {
		return nil, rest.Invalid(map[string]string{"role": "is required; null removes the role"})
	}
	change, err := a.SuperUsers.ChangeRole(ctx, a.Directory, userID, events.PlatformRole(*role))
	if err != nil {
		return nil, err
	}
	return a.writeUser(ctx, userID, change)
}

func (a *API) writeUser(
	ctx context.Context, userID string, cmd commands.Command[state.User],
) (*platformUserOutput, error) {
	state, done, err := rest.Do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	return a.showUser(ctx, userID, state, done)
}

func (a *API) showUser(
	ctx context.Context, userID string, state state.User, done writer.Done,
) (*platformUserOutput, error) {
	user, err := a.Queries.PlatformUser(ctx, userID)
	user.Role, user.Active = string(state.PlatformRole), !state.Deactivated // the read model may not show these yet
	return &platformUserOutput{Changed: rest.ChangeHeaders(done), Body: showPlatformUser(user)}, err
}
