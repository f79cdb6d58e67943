package snapshot

import (
	"strings"
	"time"

	"flagledger/events"
)

// User is what requests need of a person.
type User struct {
	Registered   bool
	Tenants      []string // of the person: first the first that they created, then the others by when they joined
	PlatformRole events.PlatformRole
	Deactivated  bool
	Erased       bool

	EndedBefore time.Time // sessions that began before it have ended
	EndedExcept string    // except this one
}

// User returns a person. A person who never signed in is the zero User.
func (s *Snapshot) User(id string) User {
	if u, ok := s.users.Load(id); ok {
		return *u
	}
	return User{}
}

type session struct{ UserID, ID string }

// SessionEnded reports whether a session that began at a given time has ended: the person signed out of it or changed
// their password since.
func (s *Snapshot) SessionEnded(userID, sessionID string, began time.Time) bool {
	if u, ok := s.users.Load(userID); ok && began.Before(u.EndedBefore) && sessionID != u.EndedExcept {
		return true
	}
	_, ended := s.ended.Load(session{userID, sessionID})
	return ended
}

func (s *Snapshot) applyUser(e events.Recorded, fact events.UserFact) error {
	id := strings.TrimPrefix(e.Stream, events.UserStream(""))
	u := s.User(id)
	for _, tenant := range u.Tenants {
		if t, ok := s.tenants.Load(tenant); ok {
			s.changes.notifyAccess(t)
		}
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
		u.EndedBefore, u.EndedExcept = fact.Before, fact.Except
	case events.SessionEnded:
		s.end(session{fact.UserID, fact.SessionID}, fact.Until)
		return nil
	}
	s.keepUser(id, u, e.Time)
	return nil
}

// erasedFor is for how long it is known that a person was erased who is in no tenant: longer than any token is good
// for.
const erasedFor = 24 * time.Hour

// keepUser stores a person's state after a fact. It removes a person without tenants and account; an erased one only
// after their tokens have expired.
func (s *Snapshot) keepUser(id string, u User, at time.Time) {
	switch {
	case len(u.Tenants) == 0 && u.Erased:
		s.users.Delete(id)
		s.end(session{id, allSessions}, at.Add(erasedFor))
	case len(u.Tenants) == 0 && !u.Registered && u.PlatformRole == "" && !u.Deactivated && u.EndedBefore.IsZero():
		s.users.Delete(id)
	default:
		s.users.Store(id, &u)
	}
}

// allSessions stands for all sessions of a person. It is no id of one.
const allSessions = "*"

// end notes until when the tokens of a session that has ended are good.
func (s *Snapshot) end(of session, until time.Time) {
	now := time.Now()
	s.sweepSessions(now)
	if until.After(now) {
		s.ended.Store(of, until)
	}
}

// sessionSweepInterval is the least time between two sweeps, so that most sessions that end do not wait for one.
const sessionSweepInterval = time.Minute

// sweepSessions drops ended sessions whose tokens have expired: these are refused anyway.
func (s *Snapshot) sweepSessions(now time.Time) {
	if now.Sub(s.sessionsSwept) < sessionSweepInterval {
		return
	}
	s.sessionsSwept = now
	s.ended.DeleteMatching(func(_ session, until time.Time) (bool, bool) { return until.Before(now), false })
}
