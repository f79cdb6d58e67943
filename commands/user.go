package commands

import (
	"time"

	"flagledger/events"
)

// User is the state of a person's stream.
type User struct {
	Exists bool
	Ended  map[string]bool // sessions, by id
}

func (u *User) evolve(r events.Recorded) {
	switch fact := r.Fact.(events.UserFact).(type) {
	case events.UserRegistered:
		u.Exists = true
	case events.SessionEnded:
		if u.Ended == nil {
			u.Ended = map[string]bool{}
		}
		u.Ended[fact.SessionID] = true
	}
}

// RegisterUser notes a person who signs in for the first time. For one who is known there is nothing to do.
type RegisterUser struct {
	ID       string
	Provider string
}

func (c RegisterUser) stream() string { return events.UserStream(c.ID) }

func (c RegisterUser) decide(u User) ([]events.Fact, error) {
	if u.Exists {
		return nil, nil
	}
	return []events.Fact{events.UserRegistered{ID: c.ID, Provider: c.Provider}}, nil
}

// EndSession ends a person's session: its tokens are refused from then on. Until is when the last of them expires by itself.
type EndSession struct {
	UserID    string
	SessionID string
	Until     time.Time
}

func (c EndSession) stream() string { return events.UserStream(c.UserID) }

func (c EndSession) decide(u User) ([]events.Fact, error) {
	if u.Ended[c.SessionID] {
		return nil, nil
	}
	return []events.Fact{events.SessionEnded{UserID: c.UserID, SessionID: c.SessionID, Until: c.Until.UTC()}}, nil
}
