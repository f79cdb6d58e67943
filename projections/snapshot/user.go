package snapshot

import (
	"strings"
	"time"

	"flagledger/events"
)

// User is what requests ask of a person.
type User struct {
	Registered   bool
	Tenants      []string // that the person is a member of, the first one first
	PlatformRole events.PlatformRole
	Deactivated  bool
	Erased       bool

	endedBefore time.Time // sessions that began before have ended
	endedExcept string    // but this one
}

// User finds a person. One who never signed in has no tenants.
func (s *Snapshot) User(id string) User {
	if u, ok := s.users.Load(id); ok {
		return *u
	}
	return User{}
}

type session struct{ userID, id string }

// SessionEnded reports whether a session of a person has ended that began at an instant: he has signed out of it, or has another password since.
func (s *Snapshot) SessionEnded(userID, sessionID string, began time.Time) bool {
	if u, ok := s.users.Load(userID); ok && began.Before(u.endedBefore) && sessionID != u.endedExcept {
		return true
	}
	_, ended := s.ended.Load(session{userID, sessionID})
	return ended
}

func (s *Snapshot) applyUser(e events.Recorded, fact events.UserFact) error {
	id := strings.TrimPrefix(e.Stream, events.UserStream(""))
	u := s.User(id)
	for _, tenant := range u.Tenants {
		s.changes.notifyAccess(s.tenant(tenant))
	}
	switch fact := fact.(type) {
	case events.UserRegistered:
		u.Registered = true
	case events.PlatformRoleChanged:
		u.PlatformRole = fact.To
	case events.UserDeactivated:
		u.Deactivated = true
	case events.UserReactivated:
		u.Deactivated = false
	case events.UserErased:
		u.Erased, u.PlatformRole = true, ""
	case events.SessionsEnded:
		u.endedBefore, u.endedExcept = fact.Before, fact.Except
	case events.SessionEnded:
		now := time.Now()
		s.sweep(now)
		if fact.Until.After(now) {
			s.ended.Store(session{fact.UserID, fact.SessionID}, fact.Until)
		}
		return nil
	}
	s.users.Store(id, &u)
	return nil
}

// sweepInterval is how often all ended sessions are looked through: of many that end, few wait for it.
const sweepInterval = time.Minute

// sweep drops the ended sessions whose tokens have expired meanwhile.
func (s *Snapshot) sweep(now time.Time) {
	if now.Sub(s.swept) < sweepInterval {
		return
	}
	s.swept = now
	s.ended.DeleteMatching(func(_ session, until time.Time) (bool, bool) { return until.Before(now), false })
}
