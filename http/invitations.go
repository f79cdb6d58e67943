package http

import (
	"context"
	"net/http"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

// InvitationBody is an invitation to the platform.
type InvitationBody struct {
	ID        string       `json:"id" example:"0198c5a1-ab3f-7c62-9d17-8e5f3a1c7b24"`
	Email     string       `json:"email" example:"ops@example.com"`
	Role      string       `json:"role" enum:"viewer,admin,super_user" example:"admin"`
	Status    string       `json:"status" enum:"pending,accepted,revoked,expired"`
	InvitedBy string       `json:"invitedBy" doc:"The id of the inviter" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	CreatedAt recordedTime `json:"createdAt"`
	ExpiresAt timestamp    `json:"expiresAt" doc:"Counted from the last time it was sent"`
}

func showInvitation(i queries.Invitation) InvitationBody {
	return InvitationBody{
		ID: i.ID, Email: i.Email, Role: i.Role, Status: i.Status, InvitedBy: i.InvitedBy,
		CreatedAt: recordedTime(i.CreatedAt), ExpiresAt: timestamp(i.ExpiresAt),
	}
}

func showInvited(i state.Invitation, email string, now time.Time) InvitationBody {
	return InvitationBody{
		ID: i.ID, Email: email, Role: string(i.Role), Status: i.Status(now), InvitedBy: i.InvitedBy,
		CreatedAt: recordedTime(i.CreatedAt), ExpiresAt: timestamp(i.ExpiresAt),
	}
}

type invitationOutput struct {
	Changed
	Location string `header:"Location"`
	Body     InvitationBody
}

// acceptedBody is the response of an action with the resulting invitation.
type acceptedBody struct {
	Success bool `json:"success" example:"true"`
	InvitationBody
}

type acceptedOutput struct {
	Changed
	Body acceptedBody
}

// InvitationPath names an invitation.
type InvitationPath struct {
	ChangeInput
	ID string `path:"invitationId" example:"0198c5a1-ab3f-7c62-9d17-8e5f3a1c7b24"`
}

type newInvitationBody struct {
	Email string `json:"email" maxLength:"254" example:"ops@example.com"`
	Role  string `json:"role" enum:"viewer,admin" example:"admin"`
}

func (a *API) addInvitations() {
	const tag, path = "Platform", "/api/v1/admin/invitations"
	super := platformAccess(events.SuperUser)
	create := operation("POST", path, "create-invitation", tag, "Invite a person to a platform role, by mail")
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	register(a, super, create, func(ctx context.Context, in *struct {
		ChangeInput
		Body newInvitationBody
	}) (*invitationOutput, error) {
		address, wrong := readAddress(in.Body.Email)
		create := commands.CreateInvitation{
			ID:     newID(ctx),
			Role:   events.PlatformRole(in.Body.Role),
			Listed: a.SuperUsers.Has(address),
		}
		if err := checkCommand(ctx, a.Writer, wrong, create); err != nil {
			return nil, err
		}
		return a.invite(ctx, address, create)
	})
	register(a, super, operation("GET", path, "list-invitations", tag, "The invitations to the platform"),
		func(ctx context.Context, in *PageInput) (*listOutput[InvitationBody], error) {
			list, err := a.Queries.Invitations(ctx, in.page())
			return listResponse(ctx, *in, list, err, showInvitation)
		})
	get := operation("GET", path+"/{invitationId}", "get-invitation", tag, "One invitation")
	get.Errors = []int{http.StatusNotFound}
	register(a, super, get, func(ctx context.Context, in *struct {
		ID string `path:"invitationId" example:"0198c5a1-ab3f-7c62-9d17-8e5f3a1c7b24"`
	}) (*invitationOutput, error) {
		invitation, err := a.Queries.Invitation(ctx, in.ID)
		return &invitationOutput{Body: showInvitation(invitation)}, err
	})
	revoke := operation("DELETE", path+"/{invitationId}", "revoke-invitation", tag, "Revoke an invitation")
	revoke.DefaultStatus = http.StatusNoContent
	revoke.Errors = []int{http.StatusNotFound, http.StatusConflict}
	register(a, super, revoke, func(ctx context.Context, in *InvitationPath) (*noContent, error) {
		_, done, err := do(ctx, a.Writer, commands.RevokeInvitation{InvitationRef: a.invitationRef(in.ID)})
		return &noContent{changeHeaders(done)}, err
	})
	resend := operation("POST", path+"/{invitationId}/resend", "resend-invitation", tag,
		"Mail an invitation again, with a new expiry")
	resend.Description = "If the address received many in the last hour, it is mailed later."
	resend.Errors = []int{http.StatusNotFound, http.StatusConflict}
	register(a, super, resend, func(ctx context.Context, in *InvitationPath) (*successOutput, error) {
		resend := commands.ResendInvitation{InvitationRef: a.invitationRef(in.ID)}
		done, err := limitInvitations(ctx, a, platformInvitations, resend, func() (done commands.Done, err error) {
			_, done, err = do(ctx, a.Writer, resend)
			return done, err
		})
		if err != nil {
			return nil, err
		}
		return successResponse(done), nil
	})
	accept := operation("POST", path+"/accept", "accept-invitation", tag,
		"Accept the role that the caller's verified address was invited to")
	accept.Errors = []int{http.StatusNotFound}
	register(a, access{who: person}, accept, a.acceptInvitation)
}

// readAddress returns the canonical form of an address, or the error of the field email.
func readAddress(email string) (address string, wrong map[string]string) {
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

func (a *API) invite(ctx context.Context, email string, create commands.CreateInvitation) (*invitationOutput, error) {
	if err := bodyErrors(ctx); err != nil {
		return nil, err
	}
	create.Now = a.Now()
	var invitation state.Invitation
	done, err := limitInvitations(ctx, a, platformInvitations, create, func() (done commands.Done, err error) {
		invitation, done, err = a.Inviter.InviteToPlatform(ctx, runner[state.Invitation](a), create, email)
		return done, err
	})
	if err != nil {
		return nil, err
	}
	return &invitationOutput{
		Changed:  changeHeaders(done),
		Location: publicPath(ctx, "/api/v1/admin/invitations/"+create.ID),
		Body:     showInvited(invitation, email, create.Now),
	}, nil
}

func (a *API) acceptInvitation(ctx context.Context, _ *ChangeInput) (*acceptedOutput, error) {
	claims, now := principalOf(ctx).claims, a.Now()
	accepted, done, err := a.Inviter.AcceptToPlatform(ctx, callMetadata(ctx), claims, now)
	if err != nil {
		return nil, err
	}
	return &acceptedOutput{
		Changed: changeHeaders(done),
		Body:    acceptedBody{true, showInvited(accepted, claims.Email, now)},
	}, nil
}
