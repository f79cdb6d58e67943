package state

import (
	"maps"
	"time"

	"flagledger/events"
)

// User is the state of a person's stream.
type User struct {
	Exists            bool
	Ended             map[string]time.Time // sessions that ended, by id: when the last of their tokens expires
	PlatformRole      events.PlatformRole
	PlatformRoleSince time.Time // when the platform role last changed
	Deactivated       bool
	DeactivatedAt     time.Time
	Erased            bool
	CreatedAt         time.Time
	EndedBefore       time.Time // sessions that began before it have ended
	EndedExcept       string    // except this one

	sweepAt int // the number of ended sessions at which expired ones are dropped
}

// Apply implements State.
func (u *User) Apply(r events.Recorded) {
	switch fact := r.Fact.(events.UserFact).(type) {
	case events.UserRegistered:
		u.Exists, u.CreatedAt = true, r.At
	case events.SessionEnded:
		u.end(fact, r.Time)
	case events.PlatformRoleChanged:
		u.PlatformRole, u.PlatformRoleSince = fact.To, r.Time
	case events.UserDeactivated:
		u.Deactivated, u.DeactivatedAt = true, r.Time
	case events.UserReactivated:
		u.Deactivated = false
	case events.UserErased:
		u.Erased, u.PlatformRole = true, ""
	case events.SessionsEnded:
		u.EndedBefore, u.EndedExcept = fact.Before, fact.Except
	}
}

// end adds an ended session, and now and then drops those whose tokens have expired.
func (u *User) end(fact events.SessionEnded, now time.Time) {
	if u.Ended == nil {
		u.Ended = map[string]time.Time{}
	}
	if len(u.Ended) >= u.sweepAt {
		maps.DeleteFunc(u.Ended, func(_ string, until time.Time) bool { return until.Before(now) })
		u.sweepAt = max(64, 2*len(u.Ended))
	}
	u.Ended[fact.SessionID] = fact.Until
}

// Clone implements State.
func (u *User) Clone() User {
	c := *u
	c.Ended = maps.Clone(u.Ended)
	return c
}

// Size implements State.
func (u *User) Size() int { return 512 + 128*len(u.Ended) }
