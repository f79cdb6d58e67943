package commands

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"
)

// Identity is the identity provider: it knows people's credentials and vouches for who they are. Its errors are *Error:
//
//   - Unauthenticated for credentials or tokens that do not hold.
//   - Conflict for an address that is taken.
//   - Invalid, with the field, for a bad address, password or mailed token.
//   - TooMany after too many attempts.
//   - Unavailable if it cannot be reached or is not set up for what is asked.
type Identity interface {
	Passwords
	// SignUp creates an account and signs it in. Where the provider does not take addresses on trust, it mails a link that
	// verifies this one.
	SignUp(ctx context.Context, email, password, displayName string) (Session, error)
	// SignUpVerified is SignUp for somebody who has shown that the address is theirs.
	SignUpVerified(ctx context.Context, email, password, displayName string) (Session, error)
	// MarkVerified notes that the address of an account is its owner's, who has shown it by a mailed link. It may be
	// repeated.
	MarkVerified(ctx context.Context, userID string) error
	// SignIn answers a right address and password. It tells neither by its answer nor by its duration whether the address
	// is known.
	SignIn(ctx context.Context, email, password string) (Session, error)
	// Refresh trades a refresh token for new tokens of the same session, unless mayContinue refuses: then the token stays
	// good. A token that was used before is refused with a *ReusedTokenError.
	Refresh(ctx context.Context, refreshToken string, mayContinue func(Claims) error) (Session, error)
	// Verify tells whom an ID token speaks of. It does no I/O once it knows the provider's keys, and knows nothing of
	// sessions that have ended since the token was issued.
	Verify(ctx context.Context, idToken string) (Claims, error)
	// Admit is Verify for somebody who begins to use the service: it asks the provider whether the session still stands.
	Admit(ctx context.Context, idToken string) (Claims, error)
	// Revoke ends a session's refresh tokens. ID tokens stay valid to the provider until they expire: who must refuse them
	// keeps track.
	Revoke(ctx context.Context, userID, sessionID string) error
	// EndSessions ends all refresh tokens and mailed links of a person who has been shut out at a time, and returns the
	// sessions that end. It may be repeated.
	EndSessions(ctx context.Context, userID string, at time.Time) (EndSessions, error)
	// ForgotPassword has a link mailed that sets a new password, if the address is known. It returns at once, the same for
	// any address.
	ForgotPassword(ctx context.Context, email string) error
	// VerifyEmail marks the address of an account as verified, for whoever has the token of the link that was mailed to
	// it. The password proves that the account is theirs, and not of somebody who signed up with their address; with a
	// wrong one the link stays good, as it does if mayVerify refuses the person.
	VerifyEmail(ctx context.Context, token, password string, mayVerify func(userID string) error) error
}

// ReusedTokenError refuses a refresh token that was used before. Either use may be a thief's, so the caller ends the
// session.
type ReusedTokenError struct {
	UserID    string
	SessionID string
}

func (e *ReusedTokenError) Error() string {
	return "the refresh token was used before: its session has ended"
}

// Unwrap makes it an Unauthenticated refusal.
func (e *ReusedTokenError) Unwrap() error { return &Error{Kind: Unauthenticated, Detail: e.Error()} }

// Claims is what a verified ID token says.
type Claims struct {
	UserID        string
	Email         string
	EmailVerified bool // the address is theirs, or is taken to be
	EmailAssumed  bool // it counts as verified, and nobody has proved it: see local.Options
	DisplayName   string
	Provider      string // password, google.com, github.com, microsoft.com
	SessionID     string
	AuthTime      time.Time // when the session began, in whole seconds
	ExpiresAt     time.Time
}

// EmailProved reports whether the person has proved that the address is theirs.
func (c Claims) EmailProved() bool { return c.EmailVerified && !c.EmailAssumed }

// Canonical is the claims with the address in its canonical form. An address that has none counts as not verified, so
// that it matches nothing.
func (c Claims) Canonical() Claims {
	if address, ok := ParseEmail(c.Email); ok {
		c.Email = address
	} else {
		c.EmailVerified, c.EmailAssumed = false, false
	}
	return c
}

// Session is a signed-in person with the tokens that prove it.
type Session struct {
	Claims
	IDToken      string
	RefreshToken string
	ExpiresIn    time.Duration // of the ID token
}

const maxDisplayName = 200 // characters

// CheckSignUp tells all that is wrong with the fields of a sign-up, nil where nothing is.
func CheckSignUp(email, password, displayName string) error {
	wrong := fields{}
	wrong.checkEmail("email", email)
	wrong.checkPassword("password", password)
	// it goes into tokens
	wrong.check(utf8.RuneCountInString(displayName) <= maxDisplayName, "displayName", "must be at most %d characters",
		maxDisplayName)
	wrong.check(utf8.ValidString(displayName) && !strings.ContainsRune(displayName, 0), "displayName", "must be text")
	return wrong.err()
}
