package commands

import (
	"context"
	"time"
)

// SessionEnder ends sessions and mailed links of people. Identity providers implement it.
type SessionEnder interface {
	EndSessions(ctx context.Context, userID string, at time.Time) (EndSessions, error)
}

// Deactivate locks a person out, and then ends their sessions and mailed links, so that none of these works once the
// person is let in again. If it fails after the first step, the same call made again does the rest, and so does
// Reactivate.
func Deactivate(
	ctx context.Context, w *Writer, provider SessionEnder, do Runner[User], by By, userID string,
) (User, Done, error) {
	user, done, err := do(ctx, DeactivateUser{UserRef{userID}})
	if err != nil || !user.Deactivated {
		return user, done, err
	}
	user, ended, err := endSessionsOf(ctx, w, provider, by, userID, user.deactivatedAt)
	if ended.Position.Compare(done.Position) > 0 {
		done.Position = ended.Position
	}
	done.Stale = done.Stale || ended.Stale
	return user, done, err
}

// Reactivate lets a deactivated person in again. First it ends the sessions and links that are left, such as a link
// mailed since.
func Reactivate(
	ctx context.Context, w *Writer, provider SessionEnder, do Runner[User], by By, userID string,
) (User, Done, error) {
	user, err := readUser(ctx, w, userID)
	if err == nil && user.Deactivated {
		user, _, err = endSessionsOf(ctx, w, provider, by, userID, w.now())
	}
	if err != nil {
		return user, Done{}, err
	}
	return do(ctx, ReactivateUser{UserRef{userID}})
}

// endSessionsOf ends the sessions and links of a person that began before a time.
func endSessionsOf(
	ctx context.Context, w *Writer, provider SessionEnder, by By, userID string, at time.Time,
) (User, Done, error) {
	ends, err := provider.EndSessions(ctx, userID, at)
	if err != nil {
		return User{}, Done{}, err
	}
	by.Once = nil // an Idempotency-Key's ids are for the facts of the request itself
	return Do(ctx, w, by, ends)
}
