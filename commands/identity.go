package commands

import (
	"context"
	"time"
)

// Identity is the identity provider: it knows people's credentials and vouches for who they are. Its errors are *Error: Unauthenticated for
// credentials or tokens that do not hold, Conflict for an address that is taken, Invalid with the field for a bad address or password,
// Unavailable when the provider cannot be reached.
type Identity interface {
	// SignUp creates an account and signs it in.
	SignUp(ctx context.Context, email, password, displayName string) (Session, error)
	// SignIn answers a right address and password. It tells neither by its answer nor by its duration whether the address is known.
	SignIn(ctx context.Context, email, password string) (Session, error)
	// Refresh trades a refresh token for a new session state. A token used twice ends its session.
	Refresh(ctx context.Context, refreshToken string) (Session, error)
	// Verify tells whom an ID token speaks of. It does no I/O once it knows the provider's keys.
	Verify(ctx context.Context, idToken string) (Claims, error)
	// Revoke ends a session's refresh tokens. ID tokens stay valid to the provider until they expire: who must refuse them keeps track.
	Revoke(ctx context.Context, userID, sessionID string) error
}

// Claims is what a verified ID token says.
type Claims struct {
	UserID        string
	Email         string
	EmailVerified bool
	DisplayName   string
	Provider      string // password, google.com, github.com, microsoft.com
	SessionID     string
	ExpiresAt     time.Time
}

// Session is a signed-in person with the tokens that prove it.
type Session struct {
	Claims
	IDToken      string
	RefreshToken string
	ExpiresIn    time.Duration // of the ID token
}
