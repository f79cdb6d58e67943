package tenants

import (
	"context"
	"net/http"
	"net/url"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

// memberBody is a member of a tenant. The API calls them tenant users.
type memberBody struct {
	UserID         string            `json:"userId" doc:"For a pending member, a temporary id until they sign in" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	Email          string            `json:"email" example:"dev@example.com"`
	DisplayName    string            `json:"displayName" doc:"\"erased user\" if the person was erased, \"withdrawn invitation\" for a former pending member who never joined" example:"Dee Veloper"`
	Role           string            `json:"role" enum:"admin,developer,viewer" example:"developer"`
	Pending        bool              `json:"pending" doc:"Whether the person has not yet signed in with the address since being added" example:"false"`
	LastAccessedAt *rest.Timestamp   `json:"lastAccessedAt" nullable:"true" doc:"null if they never visited the tenant"`
	CreatedAt      rest.RecordedTime `json:"createdAt"`
}

func showMember(m queries.Member) memberBody {
	body := memberBody{
		UserID: m.UserID, Email: m.Email, DisplayName: m.DisplayName, Role: m.Role, Pending: m.Pending,
		LastAccessedAt: (*rest.Timestamp)(m.LastAccessedAt), CreatedAt: rest.RecordedTime(m.CreatedAt),
	}
	if !m.Known {
		body.DisplayName = rest.UnknownName(m.Withdrawn)
	}
	return body
}

type memberOutput struct {
	rest.Changed
	Location string `header:"Location"`
	Body     memberBody
}

// NewMemberBody is a person to add to a tenant.
type NewMemberBody struct {
	Email string `json:"email" maxLength:"254" example:"dev@example.com"`
	Role  string `json:"role" enum:"admin,developer,viewer" example:"developer"`
	// Invitation is an extension.
	Invitation bool `json:"invitation,omitempty" doc:"Whether the person must accept first, in place of becoming a member at the next sign-in. Required for a person who left the tenant or declined" example:"false"`
}

type memberRoleBody struct {
	Role string `json:"role" enum:"admin,developer,viewer" example:"viewer"`
}

// MemberPath names a member of a tenant.
type MemberPath struct {
	rest.TenantPath
	rest.ChangeInput
	UserID string `path:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
}

func (a *API) addMembers() {
	const tag, path = "Members", "/api/v1/tenants/{tenantId}/users"
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Viewer},
		rest.Operation("GET", path, "list-members", tag, "A tenant's members, pending ones among them"),
		func(ctx context.Context, in *struct {
			rest.TenantPath
			rest.PageInput
			rest.HistoricalListInput
		}) (*rest.ListOutput[memberBody], error) {
			list, err := a.Queries.Members(ctx, in.ID, in.At, in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, showMember)
		},
	)
	add := rest.Operation("POST", path, "add-member", tag, "Add a member by e-mail address")
	add.Description = "Creates a pending member, who becomes a member at the next sign-in or refresh with the verified " +
		"address. Until then the list shows the address as sent, even if it has no account.\n\n" +
		"If the person left the tenant or declined, the call returns 409 of the type `left`. Send `invitation: true` to " +
		"invite them: they join when they accept.\n\n" +
		"Until a new member opens the tenant or accepts, its admins see neither their last access nor their product " +
		"tours, and cannot notify them. An invitation is mailed, later if the address received many. Additions a day are " +
		"limited by the tenant's plan, and for a person by the best plan among their tenants; beyond a limit the call " +
		"returns 429."
	add.DefaultStatus = http.StatusCreated
	add.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, add, a.addMember)
	a.addMembership(tag)
	change := rest.Operation("PATCH", path+"/{userId}", "change-member-role", tag, "Give a member another role")
	change.Description = "The last admin must remain admin, and the demo people of a sandbox cannot become admin."
	change.Errors = []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin, EndsAccess: true}, change, func(ctx context.Context, in *struct {
		MemberPath
		Body memberRoleBody
	}) (*memberOutput, error) {
		return a.changeMember(ctx, in.ID, in.UserID, commands.ChangeRole{
			TenantRef: commands.TenantRef{
				TenantID: in.ID,
			},
			UserID:  in.UserID,
			Role:    events.Role(in.Body.Role),
			ShutOut: a.blockedAdmins(in.ID),
		})
	})
	remove := rest.Operation("DELETE", path+"/{userId}", "remove-member", tag, "Remove a member, or leave the tenant")
	remove.Description = "Admins may remove any member, and members may remove themselves. The last admin cannot be " +
		"removed."
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Viewer, EndsAccess: true},
		remove,
		func(ctx context.Context, in *MemberPath) (*rest.NoContent, error) {
			if p := rest.PrincipalOf(ctx); p.Role != events.AdminRole && p.Claims.UserID != in.UserID {
				return nil, rest.RoleRefused(p.Role)
			}
			var remove commands.Command[state.Tenant]
			member := commands.RemoveMember{
				TenantRef: commands.TenantRef{TenantID: in.ID},
				UserID:    in.UserID,
				ShutOut:   a.blockedAdmins(in.ID),
			}
			if remove = member; rest.PrincipalOf(ctx).Claims.UserID == in.UserID {
				remove = commands.LeaveTenant{RemoveMember: member}
			}
			done, err := a.Inviter.RemoveMember(ctx, rest.Runner[state.Tenant](a.Core), remove, in.UserID)
			return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
		},
	)
}

// blockedAdmins returns the tenant's admins who are deactivated or erased, according to the snapshot.
func (a *API) blockedAdmins(tenantID string) (ids []string) {
	tenant, ok := a.Live.Tenant(tenantID)
	if !ok {
		return nil
	}
	for _, id := range tenant.Admins() {
		if a.Live.ShutOut(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (a *API) addMember(ctx context.Context, in *struct {
	rest.TenantPath
	rest.ChangeInput
	Body NewMemberBody
}) (*memberOutput, error) {
	return a.InviteMember(ctx, in.ID, in.Body)
}

// InviteMember adds a person to a tenant, within the daily quota of invitations.
func (a *API) InviteMember(ctx context.Context, tenantID string, body NewMemberBody) (*memberOutput, error) {
	add := commands.InviteMember{
		TenantRef:  commands.TenantRef{TenantID: tenantID},
		Role:       events.Role(body.Role),
		MustAccept: body.Invitation,
	}
	address, wrong := ReadAddress(body.Email)
	if err := rest.CheckCommand(ctx, a.Writer, wrong, add); err != nil {
		return nil, err
	}
	var id string
	var member state.Member
	done, err := limitInvitations(
		ctx,
		a,
		a.tenantInvitations(tenantID, rest.PrincipalOf(ctx).Claims.UserID),
		add,
		func() (done writer.Done, err error) {
			id, member, done, err = a.Inviter.InviteMember(ctx, rest.Runner[state.Tenant](a.Core), add, address, rest.NewID(ctx))
			return done, err
		},
	)
	if err != nil {
		return nil, err
	}
	profile, err := a.Directory.Profile(ctx, tenantID, id)
	if err != nil {
		return nil, err
	}
	if member.Pending && !profile.Known {
		profile.Email, profile.Known = address, true
	}
	return &memberOutput{
		Changed:  rest.ChangeHeaders(done),
		Location: rest.PublicPath(ctx, "/api/v1/tenants/"+url.PathEscape(tenantID)+"/users/"+url.PathEscape(id)),
		Body:     showMember(memberOf(id, member, profile)),
	}, nil
}

func (a *API) changeMember(
	ctx context.Context, tenantID, userID string, cmd commands.Command[state.Tenant],
) (*memberOutput, error) {
	tenant, done, err := rest.Do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	profile, err := a.Directory.Profile(ctx, tenantID, userID)
	if err != nil {
		return nil, err
	}
	return &memberOutput{
		Changed: rest.ChangeHeaders(done),
		Body:    showMember(memberOf(userID, tenant.Members[userID], profile)),
	}, nil
}

func memberOf(userID string, m state.Member, p directory.Profile) queries.Member {
	if m.WasPending && p.LastAccessedAt != nil && p.LastAccessedAt.Before(m.CreatedAt) { // of an earlier membership
		p.LastAccessedAt = nil
	}
	return queries.Member{
		UserID: userID, Email: p.Email, DisplayName: p.DisplayName, Known: p.Known, Role: string(m.Role), Pending: m.Pending,
		LastAccessedAt: p.LastAccessedAt, CreatedAt: m.CreatedAt,
	}
}
