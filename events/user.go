package events

import "time"

// UserStream names the stream of a person.
func UserStream(id string) string { return "user-" + id }

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

func (UserRegistered) StoredName() string { return "user.registered" }
func (SessionEnded) StoredName() string   { return "user.session_ended" }

func (UserRegistered) userFact() {}
func (SessionEnded) userFact()   {}
