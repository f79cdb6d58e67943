package http

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/queries"
)

// PlatformUserBody is a person, for those who run the platform.
type PlatformUserBody struct {
	UserID         string           `json:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	Email          string           `json:"email" example:"dev@example.com"`
	DisplayName    string           `json:"displayName" example:"Dee Veloper"`
	Role           *string          `json:"role" nullable:"true" enum:"viewer,admin,super_user" doc:"On the platform; null for most" example:"admin"`
	Active         bool             `json:"active" doc:"false for one who has been deactivated" example:"true"`
	CreatedAt      recordedTime     `json:"createdAt"`
	LastAccessedAt *timestamp       `json:"lastAccessedAt" nullable:"true"`
	Tenants        []membershipBody `json:"tenants"`
}

func showPlatformUser(u queries.PlatformUser) PlatformUserBody {
	body := PlatformUserBody{
		UserID:         u.UserID,
		Email:          u.Email,
		DisplayName:    u.DisplayName,
		Active:         u.Active,
		CreatedAt:      recordedTime(u.CreatedAt),
		LastAccessedAt: (*timestamp)(u.LastAccessedAt),
		Tenants:        make([]membershipBody, len(u.Tenants)),
	}
	for i, m := range u.Tenants {
		body.Tenants[i] = membershipBody(m)
	}
	if u.Role != "" {
		body.Role = &u.Role
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

// platformTenantBody is a tenant as those see it who run the platform.
type platformTenantBody struct {
	TenantBody
	Usage  UsageBody `json:"usage" doc:"Evaluations up to five seconds ago"`
	Active bool      `json:"active" doc:"false for one that has been deleted" example:"true"`
}

// PlatformUserPath names a person.
type PlatformUserPath struct {
	ChangeInput
	UserID string `path:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
}

// onPlatform is the access of people who have a role on the platform, or a higher one.
func onPlatform(role events.PlatformRole) access { return access{who: person, platform: role} }

// changesRoles is the access of super users to an operation that may take their own role.
var changesRoles = access{who: person, platform: events.SuperUser, endsAccess: true}

func (a *API) addPlatform() {
	const tag, users = "Platform", "/api/v1/admin/users"
	listUsers := func(ctx context.Context, in *struct {
		PageInput
		Search string `query:"q" maxLength:"200" doc:"Part of the address or the display name, in either case, or an id"`
	}) (*listOutput[PlatformUserBody], error) {
		list, err := a.Queries.PlatformUsers(ctx, in.Search, in.page())
		return listed(ctx, in.PageInput, list, err, showPlatformUser)
	}
	own := operation("GET", "/api/v1/admin/role", "get-own-platform-role", tag, "What the caller may do on the platform")
	own.Description = "Anybody may ask; most have no role there."
	register(
		a,
		access{who: person, unverified: true},
		own,
		func(ctx context.Context, _ *struct{}) (*ownRoleOutput, error) {
			out := &ownRoleOutput{}
			if role := a.platformRole(principalOf(ctx).claims); role != "" {
				out.Body.Role = new(string(role))
			}
			return out, nil
		},
	)
	register(a, onPlatform(events.PlatformAdmin), operation("GET", users, "list-users", tag, "All people"), listUsers)
	register(a, onPlatform(events.SuperUser),
		operation("GET", users+"/system", "list-system-users", tag, "All people, for super users"), listUsers)
	register(a, onPlatform(events.PlatformViewer),
		operation("GET", "/api/v1/admin/tenants", "list-all-tenants", tag, "All tenants, with what they use"),
		a.listAllTenants)

	deactivate := operation("PATCH", users+"/{userId}/deactivate", "deactivate-user", tag,
		"Shut a person out everywhere, live tokens included")
	deactivate.Description = "Sessions and mailed links end: once the person is let in again, they sign in anew."
	deactivate.Errors = []int{http.StatusNotFound, http.StatusConflict}
	register(
		a,
		onPlatform(events.SuperUser),
		deactivate,
		func(ctx context.Context, in *PlatformUserPath) (*platformUserOutput, error) {
			if in.UserID == principalOf(ctx).claims.UserID {
				return nil, newProblem(http.StatusConflict, "you cannot deactivate yourself")
			}
			state, done, err := commands.Deactivate(ctx, a.Writer, a.Identity, runner[commands.User](a), by(ctx), in.UserID)
			if err != nil {
				return nil, err
			}
			return a.showUser(ctx, in.UserID, state, done)
		},
	)
	reactivate := operation("PATCH", users+"/{userId}/reactivate", "reactivate-user", tag, "Let a person in again")
	reactivate.Errors = []int{http.StatusNotFound}
	register(
		a,
		onPlatform(events.SuperUser),
		reactivate,
		func(ctx context.Context, in *PlatformUserPath) (*platformUserOutput, error) {
			state, done, err := commands.Reactivate(ctx, a.Writer, a.Identity, runner[commands.User](a), by(ctx), in.UserID)
			if err != nil {
				return nil, err
			}
			return a.showUser(ctx, in.UserID, state, done)
		},
	)
	change := operation("PATCH", users+"/{userId}/role", "change-platform-role", tag,
		"Give a person a role on the platform; null takes it away")
	change.Errors = []int{http.StatusNotFound}
	register(a, changesRoles, change, func(ctx context.Context, in *struct {
		PlatformUserPath
		Body platformRoleBody
	}) (*platformUserOutput, error) {
		if role := in.Body.Role; !role.null && role.sent != nil && *role.sent == "" {
			return nil, invalid(map[string]string{"role": "must be one of viewer, admin, super_user; null takes the role away"})
		}
		return a.changePlatformRole(ctx, in.UserID, in.Body.Role.sent)
	})
}

type platformRoleBody struct {
	Role optional[string] `json:"role" enum:"viewer,admin,super_user" example:"admin" nullable:"true"`
}

type ownRoleOutput struct {
	Body struct {
		Role *string `json:"role" nullable:"true" enum:"viewer,admin,super_user" doc:"null for none, also while the address of the caller is not verified" example:"admin"`
	}
}

func (a *API) listAllTenants(ctx context.Context, in *struct {
	PageInput
	Search string `query:"q" maxLength:"200" doc:"Part of the name or of the address to write to, in either case, or an id"`
}) (*listOutput[platformTenantBody], error) {
	list, err := a.Queries.PlatformTenants(ctx, in.Search, in.page())
	return listed(ctx, in.PageInput, list, err, func(t queries.PlatformTenant) platformTenantBody {
		return platformTenantBody{
			TenantBody: a.showTenant(t.Tenant),
			Usage:      UsageBody{Flags: t.Flags, Evaluations: t.Evaluations, Users: t.Users},
			Active:     t.Active,
		}
	})
}

// changePlatformRole gives a person a role; nil is what a body without one says.
func (a *API) changePlatformRole(ctx context.Context, userID string, role *string) (*platformUserOutput, error) {
	if role == nil {
		return nil, invalid(map[string]string{"role": "is required; null takes the role away"})
	}
	change, err := a.SuperUsers.ChangeRole(ctx, a.Directory, userID, events.PlatformRole(*role))
	if err != nil {
		return nil, err
	}
	return a.writeUser(ctx, userID, change)
}

// platformRole is what a person may do on the platform, with a verified address alone. A super user is one as long as
// the address is on the list.
func (a *API) platformRole(c commands.Claims) events.PlatformRole {
	role := a.Live.PlatformRole(c.UserID)
	if !c.EmailVerified || role == events.SuperUser && !a.SuperUsers.Has(c.Email) {
		return ""
	}
	return role
}

func (a *API) writeUser(
	ctx context.Context, userID string, cmd commands.Command[commands.User],
) (*platformUserOutput, error) {
	state, done, err := do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	return a.showUser(ctx, userID, state, done)
}

func (a *API) showUser(
	ctx context.Context, userID string, state commands.User, done commands.Done,
) (*platformUserOutput, error) {
	user, err := a.Queries.PlatformUser(ctx, userID)
	user.Role, user.Active = string(state.PlatformRole), !state.Deactivated // which the read model may not show yet
	return &platformUserOutput{Changed: changedBy(done), Body: showPlatformUser(user)}, err
}
