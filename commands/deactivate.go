package commands

import (
	"context"
	"time"
)

// Deactivate locks a person out, and then ends their sessions and mailed links, so that none of these works once the person is let in again. If it
// fails after the first step, the same call made again does the rest.
func Deactivate(ctx context.Context, w *Writer, provider interface {
	EndSessions(ctx context.Context, userID string, at time.Time) (EndSessions, error)
}, do Doer[User], by By, userID string) (User, Done, error) {
	user, done, err := do(ctx, DeactivateUser{UserRef{userID}})
	if err != nil || !user.Deactivated {
		return user, done, err
	}
	ends, err := provider.EndSessions(ctx, userID, user.deactivatedAt)
	if err != nil {
		return user, done, err
	}
	by.Once = nil // the request's facts were found or appended above
	user, ended, err := Do(ctx, w, by, ends)
	if ended.Position.Compare(done.Position) > 0 {
		done.Position = ended.Position
	}
	done.NotShown = done.NotShown || ended.NotShown
	return user, done, err
}
