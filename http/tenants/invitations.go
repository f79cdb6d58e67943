package tenants

import (
	"context"
	"net/http"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

// InvitationBody is an invitation to the platform.
type InvitationBody struct {
	ID        string            `json:"id" example:"0198c5a1-ab3f-7c62-9d17-8e5f3a1c7b24"`
	Email     string            `json:"email" example:"ops@example.com"`
	Role      string            `json:"role" enum:"viewer,admin,super_user" example:"admin"`
	Status    string            `json:"status" enum:"pending,accepted,revoked,expired"`
	InvitedBy string            `json:"invitedBy" doc:"The id of the inviter" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	CreatedAt rest.RecordedTime `json:"createdAt"`
	ExpiresAt rest.Timestamp    `json:"expiresAt" doc:"Counted from the last time it was sent"`
}

func showInvitation(i queries.Invitation) InvitationBody {
	return InvitationBody{
		ID: i.ID, Email: i.Email, Role: i.Role, Status: i.Status, InvitedBy: i.InvitedBy,
		CreatedAt: rest.RecordedTime(i.CreatedAt), ExpiresAt: rest.Timestamp(i.ExpiresAt),
	}
}

func showInvited(i state.Invitation, email string, now time.Time) InvitationBody {
	return InvitationBody{
		ID: i.ID, Email: email, Role: string(i.Role), Status: i.Status(now), InvitedBy: i.InvitedBy,
		CreatedAt: rest.RecordedTime(i.CreatedAt), ExpiresAt: rest.Timestamp(i.ExpiresAt),
	}
}

type invitationOutput struct {
	rest.Changed
	Location string `header:"Location"`
	Body     InvitationBody
}

// acceptedBody is the response of an action with the resulting invitation.
type acceptedBody struct {
	Success bool `json:"success" example:"true"`
	InvitationBody
}

type acceptedOutput struct {
	rest.Changed
	Body acceptedBody
}

// InvitationPath names an invitation.
type InvitationPath struct {
	rest.ChangeInput
	ID string `path:"invitationId" example:"0198c5a1-ab3f-7c62-9d17-8e5f3a1c7b24"`
}

type newInvitationBody struct {
	Email string `json:"email" maxLength:"254" example:"ops@example.com"`
	Role  string `json:"role" enum:"viewer,admin" example:"admin"`
}

func (a *API) addInvitations() {
	const tag, path = "Platform", "/api/v1/admin/invitations"
	super := rest.PlatformAccess(events.SuperUser)
	create := rest.Operation("POST", path, "create-invitation", tag, "Invite a person to a platform role, by mail")
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, super, create, func(ctx context.Context, in *struct {
		rest.ChangeInput
		Body newInvitationBody
	}) (*invitationOutput, error) {
		address, wrong := ReadAddress(in.Body.Email)
		create := commands.CreateInvitation{
			ID:     rest.NewID(ctx),
			Role:   events.PlatformRole(in.Body.Role),
			Listed: a.SuperUsers.Has(address),
		}
		if err := rest.CheckCommand(ctx, a.Writer, wrong, create); err != nil {
			return nil, err
		}
		return a.Invite(ctx, address, create)
	})
	rest.Register(a.Core, super, rest.Operation("GET", path, "list-invitations", tag, "The invitations to the platform"),
		func(ctx context.Context, in *rest.PageInput) (*rest.ListOutput[InvitationBody], error) {
			list, err := a.Queries.Invitations(ctx, in.Page())
			return rest.ListResponse(ctx, *in, list, err, showInvitation)
		})
	get := rest.Operation("GET", path+"/{invitationId}", "get-invitation", tag, "One invitation")
	get.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, super, get, func(ctx context.Context, in *struct {
		ID string `path:"invitationId" example:"0198c5a1-ab3f-7c62-9d17-8e5f3a1c7b24"`
	}) (*invitationOutput, error) {
		invitation, err := a.Queries.Invitation(ctx, in.ID)
		return &invitationOutput{Body: showInvitation(invitation)}, err
	})
	revoke := rest.Operation("DELETE", path+"/{invitationId}", "revoke-invitation", tag, "Revoke an invitation")
	revoke.DefaultStatus = http.StatusNoContent
	revoke.Errors = []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(a.Core, super, revoke, func(ctx context.Context, in *InvitationPath) (*rest.NoContent, error) {
		_, done, err := rest.Do(ctx, a.Writer, commands.RevokeInvitation{InvitationRef: a.invitationRef(in.ID)})
		return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
	})
	resend := rest.Operation("POST", path+"/{invitationId}/resend", "resend-invitation", tag,
		"Mail an invitation again, with a new expiry")
	resend.Description = "If the address received many in the last hour, it is mailed later."
	resend.Errors = []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(a.Core, super, resend, func(ctx context.Context, in *InvitationPath) (*rest.SuccessOutput, error) {
		resend := commands.ResendInvitation{InvitationRef: a.invitationRef(in.ID)}
		done, err := limitInvitations(ctx, a, platformInvitations, resend, func() (done writer.Done, err error) {
			_, done, err = rest.Do(ctx, a.Writer, resend)
			return done, err
		})
		if err != nil {
			return nil, err
		}
		return rest.SuccessResponse(done), nil
	})
	accept := rest.Operation("POST", path+"/accept", "accept-invitation", tag,
		"Accept the role that the caller's verified address was invited to")
	accept.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, rest.Access{Who: rest.Person}, accept, a.acceptInvitation)
}

// ReadAddress returns the canonical form of an address, or the error of the field email.
func ReadAddress(email string) (address string, wrong map[string]string) {
	address, ok := commands.ParseEmail(email)
	wrong = map[string]string{}
	if !ok {
		wrong["email"] = commands.NotAnEmail
	}
	return address, wrong
}

func (a *API) invitationRef(id string) commands.InvitationRef {
	return commands.InvitationRef{ID: id, Now: a.Now()}
}

// Invite invites an address to the platform or to a tenant, within the daily quota.
func (a *API) Invite(ctx context.Context, email string, create commands.CreateInvitation) (*invitationOutput, error) {
	if err := rest.BodyErrors(ctx); err != nil {
		return nil, err
	}
	create.Now = a.Now()
	var invitation state.Invitation
	done, err := limitInvitations(ctx, a, platformInvitations, create, func() (done writer.Done, err error) {
		invitation, done, err = a.Inviter.InviteToPlatform(ctx, rest.Runner[state.Invitation](a.Core), create, email)
		return done, err
	})
	if err != nil {
		return nil, err
	}
	return &invitationOutput{
		Changed:  rest.ChangeHeaders(done),
		Location: rest.PublicPath(ctx, "/api/v1/admin/invitations/"+create.ID),
		Body:     showInvited(invitation, email, create.Now),
	}, nil
}

func (a *API) acceptInvitation(ctx context.Context, _ *rest.ChangeInput) (*acceptedOutput, error) {
	claims, now := rest.PrincipalOf(ctx).Claims, a.Now()
	accepted, done, err := a.Inviter.AcceptToPlatform(ctx, rest.CallMetadata(ctx), claims, now)
	if err != nil {
		return nil, err
	}
	return &acceptedOutput{
		Changed: rest.ChangeHeaders(done),
		Body:    acceptedBody{true, showInvited(accepted, claims.Email, now)},
	}, nil
}
