package commands

import (
	"context"
	"time"

	"flagledger/events/state"
)

// SessionEnder ends people's sessions and mailed links. Identity providers implement it.
type SessionEnder interface {
	EndSessions(ctx context.Context, userID string, at time.Time) (EndSessions, error)
}

// Deactivate locks a person out, and then ends their sessions and mailed links, so that these stay invalid after
// Reactivate. If it fails after the first step, a retry or Reactivate does the rest.
func Deactivate(
	ctx context.Context, w *Writer, provider SessionEnder, do Runner[state.User], by By, userID string,
) (state.User, Done, error) {
	user, done, err := do(ctx, DeactivateUser{UserRef{userID}})
	if err != nil || !user.Deactivated {
		return user, done, err
	}
	user, ended, err := endSessionsOf(ctx, w, provider, by, userID, user.DeactivatedAt)
	if ended.Position.Compare(done.Position) > 0 {
		done.Position = ended.Position
	}
	done.Stale = done.Stale || ended.Stale
	return user, done, err
}

// Reactivate lets a deactivated person in again. First it ends the remaining sessions and links, such as a link mailed
// since.
func Reactivate(
	ctx context.Context, w *Writer, provider SessionEnder, do Runner[state.User], by By, userID string,
) (state.User, Done, error) {
	user, err := readUser(ctx, w, userID)
	if err == nil && user.Deactivated {
		user, _, err = endSessionsOf(ctx, w, provider, by, userID, w.now())
	}
	if err != nil {
		return user, Done{}, err
	}
	return do(ctx, ReactivateUser{UserRef{userID}})
}

// endSessionsOf ends a person's sessions and links from before a time.
func endSessionsOf(
	ctx context.Context, w *Writer, provider SessionEnder, by By, userID string, at time.Time,
) (state.User, Done, error) {
	ends, err := provider.EndSessions(ctx, userID, at)
	if err != nil {
		return state.User{}, Done{}, err
	}
	by.Once = nil // the ids of an Idempotency-Key are for the request's own facts
	return Do(ctx, w, by, ends)
}
