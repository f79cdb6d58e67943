package people

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"flagledger/commands"
)

// Identity is the identity provider: it knows people's credentials and vouches for who they are. Its errors are
// *commands.Error:
//
//   - Unauthenticated for wrong credentials or invalid tokens.
//   - Conflict for an address that is taken.
//   - Invalid, with the field, for a bad address, password or mailed token.
//   - TooMany after too many attempts.
//   - Unavailable if it cannot be reached or is not configured for the call.
type Identity interface {
	Passwords
	// SignUp creates an account and signs it in. Unless the provider trusts addresses, it mails a link that verifies
	// this one.
	SignUp(ctx context.Context, email, password, displayName string) (Session, error)
	// SignUpVerified works like SignUp for a person who has proved that the address is theirs.
	SignUpVerified(ctx context.Context, email, password, displayName string) (Session, error)
	// MarkVerified records that an account's owner has proved the address by a mailed link. It is idempotent.
	MarkVerified(ctx context.Context, userID string) error
	// SignIn starts a session for a correct address and password. Neither its result nor its duration reveals whether
	// the address is known.
	SignIn(ctx context.Context, email, password string) (Session, error)
	// Refresh exchanges a refresh token for new tokens of the same session. If mayContinue refuses, the token stays
	// valid. A used token is refused with a *ReusedTokenError.
	Refresh(ctx context.Context, refreshToken string, mayContinue func(Claims) error) (Session, error)
	// Verify returns the claims of an ID token. It does no I/O once it has the provider's keys, and does not notice
	// sessions that ended after the token was issued.
	Verify(ctx context.Context, idToken string) (Claims, error)
	// Admit works like Verify for a sign-in: it asks the provider whether the session is still active.
	Admit(ctx context.Context, idToken string) (Claims, error)
	// Revoke ends a session's refresh tokens. The provider accepts ID tokens until they expire; the caller must refuse
	// them.
	Revoke(ctx context.Context, userID, sessionID string) error
	// EndSessions ends all refresh tokens and mailed links of a person who was locked out at a time, and returns the
	// sessions that end. It is idempotent.
	EndSessions(ctx context.Context, userID string, at time.Time) (commands.EndSessions, error)
	// ForgotPassword mails a link that sets a new password, if the address is known. It returns at once, with the same
	// result for any address.
	ForgotPassword(ctx context.Context, email string) error
	// VerifyEmail marks an account's address as verified by the token of a mailed link. The password proves that the
	// owner of the address also owns the account. With a wrong one, or if mayVerify refuses, the link stays valid.
	VerifyEmail(ctx context.Context, token, password string, mayVerify func(userID string) error) error
}

// ReusedTokenError refuses a used refresh token. Either use may be a thief's, so the caller ends the session.
type ReusedTokenError struct {
	UserID    string
	SessionID string
}

func (e *ReusedTokenError) Error() string {
	return "the refresh token was used before: its session has ended"
}

// Unwrap makes it an Unauthenticated refusal.
func (e *ReusedTokenError) Unwrap() error {
	return &commands.Error{Kind: commands.Unauthenticated, Detail: e.Error()}
}

// Claims are the claims of a verified ID token.
type Claims struct {
	UserID        string
	Email         string
	EmailVerified bool // proved, or assumed
	EmailAssumed  bool // counts as verified without a proof: see local.Options
	DisplayName   string
	Provider      string // password, google.com, github.com, microsoft.com
	SessionID     string
	AuthTime      time.Time // when the session began, in whole seconds
	ExpiresAt     time.Time
}

// EmailProved reports whether the person has proved that the address is theirs.
func (c Claims) EmailProved() bool { return c.EmailVerified && !c.EmailAssumed }

// Canonical returns the claims with the address in canonical form. An invalid address counts as unverified, so that it
// matches nothing.
func (c Claims) Canonical() Claims {
	if address, ok := commands.ParseEmail(c.Email); ok {
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

// MaxDisplayName is the longest name of a person, in characters.
const MaxDisplayName = 200

// CheckSignUp returns an error that names all wrong fields of a sign-up, or nil.
func CheckSignUp(email, password, displayName string) error {
	wrong := commands.FieldErrors{}
	wrong.CheckEmail("email", email)
	wrong.CheckPassword("password", password)
	// The name goes into tokens.
	wrong.Check(utf8.RuneCountInString(displayName) <= MaxDisplayName, "displayName", "must be at most %d characters",
		MaxDisplayName)
	wrong.Check(utf8.ValidString(displayName) && !strings.ContainsRune(displayName, 0), "displayName", "must be text")
	return wrong.Err()
}
