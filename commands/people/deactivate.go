package people

import (
	"context"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events/state"
)

// SessionEnder ends people's sessions and mailed links. Identity providers implement it.
type SessionEnder interface {
	EndSessions(ctx context.Context, userID string, at time.Time) (commands.EndSessions, error)
}

// Deactivate locks a person out, and then ends their sessions and mailed links, so that these stay invalid after
// Reactivate. If it fails after the first step, a retry or Reactivate does the rest.
func Deactivate(
	ctx context.Context, w *writer.Writer, provider SessionEnder, do writer.Runner[state.User], by writer.By,
	userID string,
) (state.User, writer.Done, error) {
	user, done, err := do(ctx, commands.DeactivateUser{UserRef: commands.UserRef{UserID: userID}})
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
	ctx context.Context, w *writer.Writer, provider SessionEnder, do writer.Runner[state.User], by writer.By,
	userID string,
) (state.User, writer.Done, error) {
	user, err := writer.ReadUser(ctx, w, userID)
	if err == nil && user.Deactivated {
		user, _, err = endSessionsOf(ctx, w, provider, by, userID, w.Now())
	}
	if err != nil {
		return user, writer.Done{}, err
	}
	return do(ctx, commands.ReactivateUser{UserRef: commands.UserRef{UserID: userID}})
}

// endSessionsOf ends a person's sessions and links from before a time.
func endSessionsOf(
	ctx context.Context, w *writer.Writer, provider SessionEnder, by writer.By, userID string, at time.Time,
) (state.User, writer.Done, error) {
	ends, err := provider.EndSessions(ctx, userID, at)
	if err != nil {
		return state.User{}, writer.Done{}, err
	}
	by.Once = nil // the ids of an Idempotency-Key are for the request's own facts
	return writer.Do(ctx, w, by, ends)
}
