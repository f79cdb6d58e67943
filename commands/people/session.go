package people

import (
	"cmp"
	"context"
	"errors"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// maxTokenTTL is the longest validity of any identity provider's ID tokens, with a margin for clock differences.
const maxTokenTTL = 2 * time.Hour

// Refresh exchanges a refresh token for new tokens of its session, and returns the active tenant. A used token ends
// its session. A failed call can be retried, because the token is used up last.
func (s *SignIn) Refresh(
	ctx context.Context, by writer.By, refreshToken string,
) (session Session, activeTenant string, err error) {
	session, err = s.Sessions.Refresh(ctx, refreshToken, func(c Claims) (err error) {
		if err := CheckSession(s.People, c); err != nil { // the provider may notice later
			return err
		}
		activeTenant, err = s.LetIn(ctx, by, c)
		return err
	})
	if reused, ok := errors.AsType[*ReusedTokenError](err); ok {
		err = cmp.Or(s.endStolen(ctx, by, reused), err)
	}
	return session, activeTenant, err
}

// endStolen ends a session whose refresh token was used twice: first its ID tokens, then the refresh tokens. If that
// fails, the next use of the token retries.
func (s *SignIn) endStolen(ctx context.Context, by writer.By, of *ReusedTokenError) error {
	by.Actor = events.Actor{Kind: events.UserActor, ID: of.UserID}
	s.Log.Warn("a refresh token was used twice: its session ends", "request", by.RequestID, "user", of.UserID,
		"session", of.SessionID)
	if _, _, err := writer.Do(ctx, s.Writer, by, s.endSession(of.UserID, of.SessionID)); err != nil {
		return err
	}
	return s.Sessions.Revoke(ctx, of.UserID, of.SessionID)
}

func (s *SignIn) endSession(userID, sessionID string) commands.EndSession {
	return commands.EndSession{UserID: userID, SessionID: sessionID, Until: s.Now().Add(maxTokenTTL)}
}

// LogOut ends a session on all nodes: first its refresh tokens, then the ID tokens. If the fact cannot be appended,
// the ID token stays valid for a retry.
func (s *SignIn) LogOut(ctx context.Context, do writer.Runner[state.User], c Claims) (writer.Done, error) {
	if err := s.Sessions.Revoke(ctx, c.UserID, c.SessionID); err != nil {
		return writer.Done{}, err
	}
	_, done, err := do(ctx, s.endSession(c.UserID, c.SessionID))
	return done, err
}
