package events

import (
	"slices"
	"time"
)

const userStreams = "user-"

// UserStream names the stream of a person.
func UserStream(id string) string { return userStreams + id }

// PlatformRole is what a person may do beside the tenants: run the platform.
type PlatformRole string

// The platform roles, each of which may do all that the next one may. The empty one is that of everybody else.
const (
	SuperUser      PlatformRole = "super_user"
	PlatformAdmin  PlatformRole = "admin"
	PlatformViewer PlatformRole = "viewer"
)

// platformRoles are the roles in their order, each after those that it includes.
var platformRoles = []PlatformRole{"", PlatformViewer, PlatformAdmin, SuperUser}

// Includes reports whether a role may do all that another one may. A role that does not exist includes none and is included by none.
func (r PlatformRole) Includes(other PlatformRole) bool {
	rank := slices.Index(platformRoles, other)
	return rank >= 0 && slices.Index(platformRoles, r) >= rank
}

// UserFact is a fact of a person's stream.
//
//sumtype:decl
type UserFact interface {
	Fact
	userFact()
}

// UserRegistered says that a person signed in for the first time.
type UserRegistered struct {
	ID       string `json:"id"`
	Provider string `json:"provider"` // as the identity provider names it: password, google.com, ...
}

// SessionEnded says that a person signed out of one session. Its tokens are refused from now on; none of them lives longer than Until.
type SessionEnded struct {
	UserID    string    `json:"userId"`
	SessionID string    `json:"sessionId"`
	Until     time.Time `json:"until"`
}

// SessionsEnded says that a person's sessions ended that began before an instant, in whole seconds: the password is another. Except is the id of
// the one that goes on, where there is one.
type SessionsEnded struct {
	Before time.Time `json:"before"`
	Except string    `json:"except,omitempty"`
}

// PlatformRoleChanged gives a person another role on the platform, or takes it away.
type PlatformRoleChanged struct {
	From PlatformRole `json:"from"`
	To   PlatformRole `json:"to"`
}

// UserDeactivated shuts a person out, everywhere.
type UserDeactivated struct{}

// UserReactivated lets a person in again.
type UserReactivated struct{}

// UserErased says that what was known of a person has been erased from the directory. He is shut out for good.
type UserErased struct{}

func (UserRegistered) StoredName() string      { return "user.registered" }
func (SessionEnded) StoredName() string        { return "user.session_ended" }
func (SessionsEnded) StoredName() string       { return "user.sessions_ended" }
func (PlatformRoleChanged) StoredName() string { return "user.platform_role_changed" }
func (UserDeactivated) StoredName() string     { return "user.deactivated" }
func (UserReactivated) StoredName() string     { return "user.reactivated" }
func (UserErased) StoredName() string          { return "user.erased" }

func (UserRegistered) userFact()      {}
func (SessionEnded) userFact()        {}
func (SessionsEnded) userFact()       {}
func (PlatformRoleChanged) userFact() {}
func (UserDeactivated) userFact()     {}
func (UserReactivated) userFact()     {}
func (UserErased) userFact()          {}
