package events

import (
	"slices"
	"time"
)

const userStreams = "user-"

// UserStream returns the name of a person's stream.
func UserStream(id string) string { return userStreams + id }

// PlatformRole is what a person may do on the whole platform, beside their roles in tenants.
type PlatformRole string

// The platform roles, each including the next one. People without one have the empty role.
const (
	SuperUser      PlatformRole = "super_user"
	PlatformAdmin  PlatformRole = "admin"
	PlatformViewer PlatformRole = "viewer"
)

// platformRoles has each role after those that it includes.
var platformRoles = []PlatformRole{"", PlatformViewer, PlatformAdmin, SuperUser}

// Includes reports whether a role includes another. An unknown role includes none, and none includes it.
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

// UserRegistered records a person's first sign-in.
type UserRegistered struct {
	ID       string `json:"id"`
	Provider string `json:"provider"` // as the identity provider names it: password, google.com, ...
}

// SessionEnded records that a person signed out of a session, whose tokens are refused from now on. The last of them
// expires at Until.
type SessionEnded struct {
	UserID    string    `json:"userId"`
	SessionID string    `json:"sessionId"`
	Until     time.Time `json:"until"`
}

// SessionsEnded ends all sessions of a person from before a time in whole seconds, because the password has changed.
// Except is the id of a session that continues, if any.
type SessionsEnded struct {
	Before time.Time `json:"before"`
	Except string    `json:"except,omitempty"`
}

// PlatformRoleChanged changes a person's platform role; it may be empty.
type PlatformRoleChanged struct {
	From PlatformRole `json:"from"`
	To   PlatformRole `json:"to"`
}

// UserDeactivated locks a person out everywhere.
type UserDeactivated struct{}

// UserReactivated lets a deactivated person in again.
type UserReactivated struct{}

// UserErased records that a person's data were erased from the keepings. They are locked out for good.
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
