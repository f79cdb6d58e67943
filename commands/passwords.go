package commands

import (
	"context"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"flagledger/events"
)

// Passwords is what an identity provider does for those who set another password. Setting one takes two calls, so that
// between them the sessions that end with the old one can be made known to all nodes.
type Passwords interface {
	// PrepareReset checks the token of a mailed link and the password that the person it was mailed to wants. The link
	// stays good until the password is set.
	PrepareReset(ctx context.Context, token, password string) (PasswordChange, error)
	// PrepareUpdate checks the password that somebody wants who knows the current one; Unauthenticated says that they do
	// not.
	PrepareUpdate(ctx context.Context, c Claims, current, password string) (PasswordChange, error)
}

// PasswordChange is a new password that has been checked, and is not set yet.
type PasswordChange struct {
	// Ends are the sessions that end with the old password: all, or all but the one that changes it. One that begins with
	// the old password before Set is among them, or is told of by the provider later.
	Ends EndSessions
	// FirstVerifies says that setting it verifies the address, which was never verified before. A provider that cannot
	// know leaves it false: Firebase forgets that an address was verified when somebody changes to another.
	FirstVerifies bool
	// Set sets the password and ends the refresh tokens of those sessions, or does nothing. The error is Unavailable if it
	// came too late or another change was prepared since, and Invalid if the provider finds the password too weak.
	Set func(context.Context) error
}

// ResetPassword sets the password of the person that a link was mailed to, unless they are shut out, and ends all of
// their sessions. Where it verifies the address, what the account has made and joined before is dropped first: it may
// have been somebody else's.
func ResetPassword(ctx context.Context, r *Reclaimer, provider Passwords, by By, token, password string) (Done, error) {
	change, err := provider.PrepareReset(ctx, token, password)
	if err != nil {
		return Done{}, err
	}
	if err := CheckActive(r.People, change.Ends.UserID); err != nil {
		return Done{}, err
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

// UpdatePassword sets the password of somebody who is signed in and knows the current one, and ends their other
// sessions.
func UpdatePassword(
	ctx context.Context, w *Writer, provider Passwords, by By, c Claims, current, password string,
) (Done, error) {
	change, err := provider.PrepareUpdate(ctx, c, current, password)
	if err != nil {
		return Done{}, err
	}
	return setPassword(ctx, w, by, change)
}

// setPassword ends the sessions and then sets the password, so that where the second step fails the old password stays.
// The request may be made again after either.
func setPassword(ctx context.Context, w *Writer, by By, change PasswordChange) (Done, error) {
	by.Actor = events.Actor{Kind: events.UserActor, ID: change.Ends.UserID}
	_, done, err := Do(ctx, w, by, change.Ends)
	if err != nil {
		return Done{}, err
	}
	return done, change.Set(ctx)
}

// MaxPassword is the longest password, in bytes.
const MaxPassword = 1024

// MinPassword is the shortest password, in characters.
const MinPassword = 8

// CheckNewPassword tells what is wrong with a password that is to be set, nil where nothing is.
func CheckNewPassword(password string) error {
	wrong := fields{}
	wrong.checkPassword("newPassword", password)
	return wrong.err()
}

// CheckPasswordChange tells all that is wrong with the fields of a change, nil where nothing is.
func CheckPasswordChange(current, password string) error {
	wrong := fields{}
	wrong.check(current != "", "currentPassword", "is required")
	wrong.checkPassword("newPassword", password)
	return wrong.err()
}

// NormalPassword returns the composed form (NFC) of a password, in which passwords are set and compared: keyboards
// write the same letters differently.
func NormalPassword(password string) string { return norm.NFC.String(password) }

func (f fields) checkPassword(field, password string) {
	f.check(utf8.RuneCountInString(NormalPassword(password)) >= MinPassword, field, "must be at least %d characters",
		MinPassword)
	f.check(len(password) <= MaxPassword, field, "must be at most %d bytes", MaxPassword)
}
