package http

import (
	"context"
	"net/http"
	"net/url"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/events"
	"flagledger/queries"
)

// memberBody is a member of a tenant: a tenant user, in the words of the interface.
type memberBody struct {
	UserID         string       `json:"userId" doc:"Of a pending member an id of its own, until they sign in" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	Email          string       `json:"email" example:"dev@example.com"`
	DisplayName    string       `json:"displayName" doc:"erased user stands for one who was erased, withdrawn invitation for a pending member of the past who never joined" example:"Dee Veloper"`
	Role           string       `json:"role" enum:"admin,developer,viewer" example:"developer"`
	Pending        bool         `json:"pending" doc:"They have not signed in with the address since they were added" example:"false"`
	LastAccessedAt *timestamp   `json:"lastAccessedAt" nullable:"true" doc:"null for one who never used the tenant"`
	CreatedAt      recordedTime `json:"createdAt"`
}

// withdrawnInvitation stands for somebody who was invited by an address that is forgotten, since the invitation was
// withdrawn.
const withdrawnInvitation = "withdrawn invitation"

// unknownName stands for a member whom the directory does not know.
func unknownName(withdrawn bool) string {
	if withdrawn {
		return withdrawnInvitation
	}
	return erasedUser
}

func showMember(m queries.Member) memberBody {
	body := memberBody{
		UserID: m.UserID, Email: m.Email, DisplayName: m.DisplayName, Role: m.Role, Pending: m.Pending,
		LastAccessedAt: (*timestamp)(m.LastAccessedAt), CreatedAt: recordedTime(m.CreatedAt),
	}
	if !m.Known {
		body.DisplayName = unknownName(m.Withdrawn)
	}
	return body
}

type memberOutput struct {
	Changed
	Location string `header:"Location"`
	Body     memberBody
}

type newMemberBody struct {
	Email string `json:"email" maxLength:"254" example:"dev@example.com"`
	Role  string `json:"role" enum:"admin,developer,viewer" example:"developer"`
	// Invitation is an extension.
	Invitation bool `json:"invitation,omitempty" doc:"They become a member once they accept, and not already when they next sign in. A person who has left the tenant or declined is added only so" example:"false"`
}

type memberRoleBody struct {
	Role string `json:"role" enum:"admin,developer,viewer" example:"viewer"`
}

// MemberPath names a member of a tenant.
type MemberPath struct {
	TenantPath
	ChangeInput
	UserID string `path:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
}

func (a *API) addMembers() {
	const tag, path = "Members", "/api/v1/tenants/{tenantId}/users"
	register(
		a,
		access{who: viewer},
		operation("GET", path, "list-members", tag, "A tenant's members, pending ones among them"),
		func(ctx context.Context, in *struct {
			TenantPath
			PageInput
			PastListInput
		}) (*listOutput[memberBody], error) {
			list, err := a.Queries.Members(ctx, in.ID, in.At, in.page())
			return listed(ctx, in.PageInput, list, err, showMember)
		},
	)
	add := operation("POST", path, "add-member", tag, "Add a member by e-mail address")
	add.Description = "It makes a pending member, who becomes a member when they next sign in with the address, " +
		"verified, or refresh their session. Until then they are shown by the address that " +
		"was typed, whether or not it has an account. A person who left the tenant or declined is refused (409, of the " +
		"type left) unless invitation is true; they become a member when they accept. " +
		"Until a new member has opened the tenant or said that they stay, its admins see neither their last use nor their " +
		"product tours, and cannot notify them. They are mailed an invitation, later if the address had many. " +
		"How many members a tenant may add on a day depends on its plan, and how many a person may add in all their " +
		"tenants on the best of these: beyond is 429."
	add.DefaultStatus = http.StatusCreated
	add.Errors = []int{http.StatusConflict}
	register(a, access{who: admin}, add, a.addMember)
	a.addMembership(tag)
	change := operation("PATCH", path+"/{userId}", "change-member-role", tag, "Give a member another role")
	change.Description = "The last admin stays one, and the demo people of a sandbox cannot become one."
	change.Errors = []int{http.StatusNotFound, http.StatusConflict}
	register(a, access{who: admin, endsAccess: true}, change, func(ctx context.Context, in *struct {
		MemberPath
		Body memberRoleBody
	}) (*memberOutput, error) {
		return a.writeMember(ctx, in.ID, in.UserID, commands.ChangeRole{
			TenantRef: commands.TenantRef{
				TenantID: in.ID,
			},
			UserID:  in.UserID,
			Role:    events.Role(in.Body.Role),
			ShutOut: a.shutOutAdmins(in.ID),
		})
	})
	remove := operation("DELETE", path+"/{userId}", "remove-member", tag, "Remove a member, or leave the tenant")
	remove.Description = "For admins, and for every member themselves. The last admin stays."
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = []int{http.StatusNotFound, http.StatusConflict}
	register(
		a,
		access{who: viewer, endsAccess: true},
		remove,
		func(ctx context.Context, in *MemberPath) (*noContent, error) {
			if p := principalOf(ctx); p.role != events.AdminRole && p.claims.UserID != in.UserID {
				return nil, roleRefused(p.role)
			}
			var remove commands.Command[commands.Tenant]
			member := commands.RemoveMember{
				TenantRef: commands.TenantRef{TenantID: in.ID},
				UserID:    in.UserID,
				ShutOut:   a.shutOutAdmins(in.ID),
			}
			if remove = member; principalOf(ctx).claims.UserID == in.UserID {
				remove = commands.LeaveTenant{RemoveMember: member}
			}
			done, err := a.Inviter.RemoveMember(ctx, runner[commands.Tenant](a), remove, in.UserID)
			return &noContent{changedBy(done)}, err
		},
	)
}

// shutOutAdmins are the admins of a tenant who have been deactivated or erased, as the snapshot knows them.
func (a *API) shutOutAdmins(tenantID string) (ids []string) {
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
	TenantPath
	ChangeInput
	Body newMemberBody
}) (*memberOutput, error) {
	return a.inviteMember(ctx, in.ID, in.Body)
}

func (a *API) inviteMember(ctx context.Context, tenantID string, body newMemberBody) (*memberOutput, error) {
	add := commands.InviteMember{
		TenantRef:  commands.TenantRef{TenantID: tenantID},
		Role:       events.Role(body.Role),
		MustAccept: body.Invitation,
	}
	address, wrong := readAddress(body.Email)
	if err := checkCommand(ctx, a.Writer, wrong, add); err != nil {
		return nil, err
	}
	var id string
	var member commands.Member
	done, err := limitInvitations(
		ctx,
		a,
		a.tenantInvitations(tenantID, principalOf(ctx).claims.UserID),
		add,
		func() (done commands.Done, err error) {
			id, member, done, err = a.Inviter.InviteMember(ctx, runner[commands.Tenant](a), add, address, newID(ctx))
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
		Changed:  changedBy(done),
		Location: publicPath(ctx, "/api/v1/tenants/"+url.PathEscape(tenantID)+"/users/"+url.PathEscape(id)),
		Body:     showMember(memberOf(id, member, profile)),
	}, nil
}

func (a *API) writeMember(
	ctx context.Context, tenantID, userID string, cmd commands.Command[commands.Tenant],
) (*memberOutput, error) {
	tenant, done, err := do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	profile, err := a.Directory.Profile(ctx, tenantID, userID)
	if err != nil {
		return nil, err
	}
	return &memberOutput{
		Changed: changedBy(done),
		Body:    showMember(memberOf(userID, tenant.Members[userID], profile)),
	}, nil
}

func memberOf(userID string, m commands.Member, p directory.Profile) queries.Member {
	if m.WasPending && p.LastAccessedAt != nil && p.LastAccessedAt.Before(m.CreatedAt) { // of an earlier membership
		p.LastAccessedAt = nil
	}
	return queries.Member{
		UserID: userID, Email: p.Email, DisplayName: p.DisplayName, Known: p.Known, Role: string(m.Role), Pending: m.Pending,
		LastAccessedAt: p.LastAccessedAt, CreatedAt: m.CreatedAt,
	}
}
