package commands

import (
	"slices"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// RegisterUser registers a person at their first sign-in, and does nothing for a known one. An erased person is
// Forbidden.
type RegisterUser struct {
	ID       string
	Provider string
}

func (c RegisterUser) Stream() string { return events.UserStream(c.ID) }

func (c RegisterUser) Tenant() string { return "" }

func (c RegisterUser) Decide(u state.User) ([]events.Fact, error) {
	if u.Erased {
		return nil, Refuse(Forbidden, "the account has been erased")
	}
	if u.Exists {
		return nil, nil
	}
	return []events.Fact{events.UserRegistered{ID: c.ID, Provider: c.Provider}}, nil
}

// EndSession ends a session and refuses its tokens from now on. Until is when the last of them expires.
type EndSession struct {
	UserID    string
	SessionID string
	Until     time.Time
}

func (c EndSession) Stream() string { return events.UserStream(c.UserID) }

func (c EndSession) Tenant() string { return "" }

func (c EndSession) Decide(u state.User) ([]events.Fact, error) {
	if _, ended := u.Ended[c.SessionID]; ended {
		return nil, nil
	}
	return []events.Fact{events.SessionEnded{UserID: c.UserID, SessionID: c.SessionID, Until: c.Until.UTC()}}, nil
}

// UserRef identifies a person.
type UserRef struct{ UserID string }

func (r UserRef) Stream() string { return events.UserStream(r.UserID) }

func (r UserRef) Tenant() string { return "" }

// admit returns NotFound for a person who never signed in or has been erased.
func (r UserRef) admit(u state.User) error {
	if !u.Exists || u.Erased {
		return Refuse(NotFound, "no user has the id %q", r.UserID)
	}
	return nil
}

// ChangePlatformRole gives a person a platform role. The empty role removes it.
type ChangePlatformRole struct {
	UserRef
	Role events.PlatformRole
	// Listed reports whether the person's address is in FLAGLEDGER_SUPER_USERS.
	Listed bool
}

func (c ChangePlatformRole) Decide(u state.User) ([]events.Fact, error) {
	if err := c.admit(u); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	if c.Role != "" {
		checkPlatformRole(wrong, c.Role, c.Listed, events.PlatformViewer, events.PlatformAdmin, events.SuperUser)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if u.PlatformRole == c.Role {
		return nil, nil
	}
	return []events.Fact{events.PlatformRoleChanged{From: u.PlatformRole, To: c.Role}}, nil
}

// checkPlatformRole checks that a role exists and may be given to this person.
func checkPlatformRole(wrong FieldErrors, role events.PlatformRole, listed bool, known ...events.PlatformRole) {
	wrong.Check(role != "", "role", "is required")
	wrong.Check(slices.Contains(known, role), "role", "must be one of %s", list(known))
	wrong.Check(role != events.SuperUser || listed, "role", "super_user is only for addresses on the allow-list")
}

// DeactivateUser locks a person out until ReactivateUser, and refuses their tokens at once. Deactivate also ends their
// sessions.
type DeactivateUser struct{ UserRef }

func (c DeactivateUser) Decide(u state.User) ([]events.Fact, error) {
	if err := c.admit(u); err != nil || u.Deactivated {
		return nil, err
	}
	return []events.Fact{events.UserDeactivated{}}, nil
}

// ReactivateUser lets a deactivated person in again.
type ReactivateUser struct{ UserRef }

func (c ReactivateUser) Decide(u state.User) ([]events.Fact, error) {
	if err := c.admit(u); err != nil || !u.Deactivated {
		return nil, err
	}
	return []events.Fact{events.UserReactivated{}}, nil
}

// EraseUser locks a person out for good. Eraser erases their data in the keepings.
type EraseUser struct {
	UserRef
	// Known reports whether a keeping knows the person, who may have signed up without ever using the service.
	Known bool
}

func (c EraseUser) Decide(u state.User) ([]events.Fact, error) {
	if u.Erased {
		return nil, nil
	}
	if !u.Exists && !c.Known {
		return nil, Refuse(NotFound, "no user has the id %q", c.UserID)
	}
	return []events.Fact{events.UserErased{}}, nil
}

// EndSessions ends all sessions of a person from before a time in whole seconds, except one.
type EndSessions struct {
	UserID string
	Before time.Time
	Except string // a session's id, empty for none
}

func (c EndSessions) Stream() string { return events.UserStream(c.UserID) }

func (c EndSessions) Tenant() string { return "" }

func (c EndSessions) Decide(u state.User) ([]events.Fact, error) {
	before := c.Before.UTC()
	if before.Before(u.EndedBefore) || before.Equal(u.EndedBefore) && c.Except == u.EndedExcept {
		return nil, nil
	}
	return []events.Fact{events.SessionsEnded{Before: before, Except: c.Except}}, nil
}
