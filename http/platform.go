package http

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

// PlatformUserBody is a person, as shown to operators.
type PlatformUserBody struct {
	UserID         string           `json:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	Email          string           `json:"email" example:"dev@example.com"`
	DisplayName    string           `json:"displayName" example:"Dee Veloper"`
	Role           *string          `json:"role" nullable:"true" enum:"viewer,admin,super_user" doc:"The platform role; null for most people" example:"admin"`
	Active         bool             `json:"active" doc:"false if deactivated" example:"true"`
	CreatedAt      recordedTime     `json:"createdAt"`
	LastAccessedAt *timestamp       `json:"lastAccessedAt" nullable:"true"`
	Tenants        []membershipBody `json:"tenants"`
}

func showPlatformUser(u queries.PlatformUser) PlatformUserBody {
	body := PlatformUserBody{
		UserID:         u.UserID,
		Email:          u.Email,
		DisplayName:    u.DisplayName,
		Role:           textOrNull(u.Role),
		Active:         u.Active,
		CreatedAt:      recordedTime(u.CreatedAt),
		LastAccessedAt: (*timestamp)(u.LastAccessedAt),
		Tenants:        make([]membershipBody, len(u.Tenants)),
	}
	for i, m := range u.Tenants {
		body.Tenants[i] = membershipBody(m)
	}
	if !u.Known {
		body.DisplayName = erasedUser
	}
	return body
}

type platformUserOutput struct {
	Changed
	Body PlatformUserBody
}

// platformTenantBody is a tenant, as shown to operators.
type platformTenantBody struct {
	TenantBody
	Usage  UsageBody `json:"usage" doc:"Evaluations lag by up to five seconds"`
	Active bool      `json:"active" doc:"false if deleted" example:"true"`
}

// PlatformUserPath names a person.
type PlatformUserPath struct {
	ChangeInput
	UserID string `path:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
}

// platformAccess returns the access of people who have a platform role or a higher one.
func platformAccess(role events.PlatformRole) access { return access{who: person, platform: role} }

// roleAccess lets super users change roles, including their own.
var roleAccess = access{who: person, platform: events.SuperUser, endsAccess: true}

func (a *API) addPlatform() {
	const tag, users = "Platform", "/api/v1/admin/users"
	listUsers := func(ctx context.Context, in *struct {
		PageInput
		Search string `query:"q" maxLength:"200" doc:"Part of the address or the display name, case-insensitive, or an id"`
	}) (*listOutput[PlatformUserBody], error) {
		list, err := a.Queries.PlatformUsers(ctx, in.Search, in.page())
		return listResponse(ctx, in.PageInput, list, err, showPlatformUser)
	}
	own := operation("GET", "/api/v1/admin/role", "get-own-platform-role", tag, "The caller's platform role")
	own.Description = "Everyone who is signed in may call it; most people have no platform role."
	register(
		a,
		access{who: person, unverified: true},
		own,
		func(ctx context.Context, _ *struct{}) (*ownRoleOutput, error) {
			out := &ownRoleOutput{}
			out.Body.Role = textOrNull(string(a.platformRole(principalOf(ctx).claims)))
			return out, nil
		},
	)
	register(a, platformAccess(events.PlatformAdmin), operation("GET", users, "list-users", tag, "All people"), listUsers)
	register(a, platformAccess(events.SuperUser),
		operation("GET", users+"/system", "list-system-users", tag, "All people, for super users"), listUsers)
	register(a, platformAccess(events.PlatformViewer),
		operation("GET", "/api/v1/admin/tenants", "list-all-tenants", tag, "All tenants with their usage"),
		a.listAllTenants)

	deactivate := operation("PATCH", users+"/{userId}/deactivate", "deactivate-user", tag,
		"Deactivate a person everywhere, including live tokens")
	deactivate.Description = "Sessions and mailed links end. After a reactivation the person must sign in again."
	deactivate.Errors = []int{http.StatusNotFound, http.StatusConflict}
	register(
		a,
		platformAccess(events.SuperUser),
		deactivate,
		func(ctx context.Context, in *PlatformUserPath) (*platformUserOutput, error) {
			if in.UserID == principalOf(ctx).claims.UserID {
				return nil, newProblem(http.StatusConflict, "you cannot deactivate yourself")
			}
			state, done, err := commands.Deactivate(ctx, a.Writer, a.Identity, runner[state.User](a), callMetadata(ctx),
				in.UserID)
			if err != nil {
				return nil, err
			}
			return a.showUser(ctx, in.UserID, state, done)
		},
	)
	reactivate := operation("PATCH", users+"/{userId}/reactivate", "reactivate-user", tag, "Reactivate a person")
	reactivate.Errors = []int{http.StatusNotFound}
	register(
		a,
		platformAccess(events.SuperUser),
		reactivate,
		func(ctx context.Context, in *PlatformUserPath) (*platformUserOutput, error) {
			state, done, err := commands.Reactivate(ctx, a.Writer, a.Identity, runner[state.User](a), callMetadata(ctx),
				in.UserID)
			if err != nil {
				return nil, err
			}
			return a.showUser(ctx, in.UserID, state, done)
		},
	)
	change := operation("PATCH", users+"/{userId}/role", "change-platform-role", tag,
		"Give a person a platform role; null removes it")
	change.Errors = []int{http.StatusNotFound}
	register(a, roleAccess, change, func(ctx context.Context, in *struct {
		PlatformUserPath
		Body platformRoleBody
	}) (*platformUserOutput, error) {
		if role := in.Body.Role; !role.null && role.sent != nil && *role.sent == "" {
			return nil, invalid(map[string]string{"role": "must be one of viewer, admin, super_user; null removes the role"})
		}
		return a.changePlatformRole(ctx, in.UserID, in.Body.Role.sent)
	})
}

type platformRoleBody struct {
	Role optional[string] `json:"role" enum:"viewer,admin,super_user" example:"admin" nullable:"true"`
}

type ownRoleOutput struct {
	Body struct {
		Role *string `json:"role" nullable:"true" enum:"viewer,admin,super_user" doc:"null without a role, and while the caller's address is not verified" example:"admin"`
	}
}

func (a *API) listAllTenants(ctx context.Context, in *struct {
	PageInput
	Search string `query:"q" maxLength:"200" doc:"Part of the name or of the contact address, case-insensitive, or an id"`
}) (*listOutput[platformTenantBody], error) {
	list, err := a.Queries.PlatformTenants(ctx, in.Search, in.page())
	return listResponse(ctx, in.PageInput, list, err, func(t queries.PlatformTenant) platformTenantBody {
		return platformTenantBody{
			TenantBody: a.showTenant(t.Tenant),
			Usage:      UsageBody{Flags: t.Flags, Evaluations: t.Evaluations, Users: t.Users},
			Active:     t.Active,
		}
	})
}

// changePlatformRole gives a person a role; nil means that the body has none.
func (a *API) changePlatformRole(ctx context.Context, userID string, role *string) (*platformUserOutput, error) {
	if role == nil {
		return nil, invalid(map[string]string{"role": "is required; null removes the role"})
	}
	change, err := a.SuperUsers.ChangeRole(ctx, a.Directory, userID, events.PlatformRole(*role))
	if err != nil {
		return nil, err
	}
	return a.writeUser(ctx, userID, change)
}

// platformRole returns a person's platform role, or "" if the address is not verified. A super user also needs an
// address on the configured list.
func (a *API) platformRole(c commands.Claims) events.PlatformRole {
	role := a.Live.PlatformRole(c.UserID)
	if !c.EmailVerified || role == events.SuperUser && !a.SuperUsers.Has(c.Email) {
		return ""
	}
	return role
}

func (a *API) writeUser(
	ctx context.Context, userID string, cmd commands.Command[state.User],
) (*platformUserOutput, error) {
	state, done, err := do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	return a.showUser(ctx, userID, state, done)
}

func (a *API) showUser(
	ctx context.Context, userID string, state state.User, done commands.Done,
) (*platformUserOutput, error) {
	user, err := a.Queries.PlatformUser(ctx, userID)
	user.Role, user.Active = string(state.PlatformRole), !state.Deactivated // the read model may not show these yet
	return &platformUserOutput{Changed: changeHeaders(done), Body: showPlatformUser(user)}, err
}
