package people

import (
	"context"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
)

// Passwords changes passwords at an identity provider, in two calls, so that between them all nodes can learn which
// sessions end.
type Passwords interface {
	// PrepareReset checks the token of a mailed link and a new password. The link stays valid until the password is
	// set.
	PrepareReset(ctx context.Context, token, password string) (PasswordChange, error)
	// PrepareUpdate checks the current and the new password of a signed-in person. It returns Unauthenticated for a
	// wrong current one.
	PrepareUpdate(ctx context.Context, c Claims, current, password string) (PasswordChange, error)
}

// PasswordChange is a checked new password that is not set yet.
type PasswordChange struct {
	// Ends are the sessions that end with the old password: all, or all but the current one. It includes a session
	// that begins with the old password before Set, or the provider reports that one later.
	Ends commands.EndSessions
	// FirstVerifies reports that setting it verifies the address for the first time. Firebase leaves it false, because
	// it forgets a verification when a person changes the address.
	FirstVerifies bool
	// Set sets the password and ends the refresh tokens of those sessions, or does nothing. It returns Unavailable if
	// it is too late or another change was prepared since, and Invalid if the provider finds the password too weak.
	Set func(context.Context) error
}

// ResetPassword sets the password of a mailed link's person, unless they are locked out, and ends all their sessions.
// If it verifies the address, it first removes what the account created and joined, which may be another person's.
func ResetPassword(ctx context.Context, r *Reclaimer, provider Passwords, by writer.By, token,
	password string) (writer.Done, error) {
	change, err := provider.PrepareReset(ctx, token, password)
	if err != nil {
		return writer.Done{}, err
	}
	if err := CheckActive(r.People, change.Ends.UserID); err != nil {
		return writer.Done{}, err
	}
	if !change.FirstVerifies {
		return setPassword(ctx, r.Writer, by, change)
	}
	set := change.Set
	change.Set = func(ctx context.Context) error {
		by.Actor = events.Actor{Kind: events.UserActor, ID: change.Ends.UserID}
		if err := r.reclaim(ctx, by, change.Ends.UserID); err != nil {
			return err
		}
		return set(ctx)
	}
	return setPassword(ctx, r.Writer, by, change)
}

// UpdatePassword sets the password of a signed-in person who knows the current one, and ends their other sessions.
func UpdatePassword(
	ctx context.Context, w *writer.Writer, provider Passwords, by writer.By, c Claims, current, password string,
) (writer.Done, error) {
	change, err := provider.PrepareUpdate(ctx, c, current, password)
	if err != nil {
		return writer.Done{}, err
	}
	return setPassword(ctx, w, by, change)
}

// setPassword ends the sessions and then sets the password, so that the old password stays if that fails. A retry is
// safe after either step.
func setPassword(ctx context.Context, w *writer.Writer, by writer.By, change PasswordChange) (writer.Done, error) {
	by.Actor = events.Actor{Kind: events.UserActor, ID: change.Ends.UserID}
	_, done, err := writer.Do(ctx, w, by, change.Ends)
	if err != nil {
		return writer.Done{}, err
	}
	return done, change.Set(ctx)
}

// CheckNewPassword returns what is wrong with a new password, or nil.
func CheckNewPassword(password string) error {
	wrong := commands.FieldErrors{}
	wrong.CheckPassword("newPassword", password)
	return wrong.Err()
}

// CheckPasswordChange returns an error that names all wrong fields of a change, or nil.
func CheckPasswordChange(current, password string) error {
	wrong := commands.FieldErrors{}
	wrong.Check(current != "", "currentPassword", "is required")
	wrong.CheckPassword("newPassword", password)
	return wrong.Err()
}
