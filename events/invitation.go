package events

import "time"

const invitationStreams = "invitation-"

// InvitationStream returns the name of the stream of an invitation to the platform.
func InvitationStream(id string) string { return invitationStreams + id }

// InvitationFact is a fact of an invitation's stream.
//
//sumtype:decl
type InvitationFact interface {
	Fact
	invitationFact()
}

// InvitationCreated invites a person to a role on the platform. The directory holds their address, under ID.
type InvitationCreated struct {
	ID        string       `json:"id"`
	Role      PlatformRole `json:"role"`
	ExpiresAt time.Time    `json:"expiresAt"`
}

// InvitationResent sends an invitation again, with a later expiry.
type InvitationResent struct {
	ExpiresAt time.Time `json:"expiresAt"`
}

// InvitationRevoked revokes an invitation.
type InvitationRevoked struct{}

// InvitationAccepted says that the invited person signed in and got the role.
type InvitationAccepted struct {
	UserID string `json:"userId"`
}

func (InvitationCreated) StoredName() string  { return "invitation.created" }
func (InvitationResent) StoredName() string   { return "invitation.resent" }
func (InvitationRevoked) StoredName() string  { return "invitation.revoked" }
func (InvitationAccepted) StoredName() string { return "invitation.accepted" }

func (InvitationCreated) invitationFact()  {}
func (InvitationResent) invitationFact()   {}
func (InvitationRevoked) invitationFact()  {}
func (InvitationAccepted) invitationFact() {}
