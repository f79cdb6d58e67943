package commands

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"flagledger/events"
)

// SandboxRequest is a request for a sandbox whose link was mailed.
type SandboxRequest struct {
	ID    string
	Email string
	Name  string
}

// SandboxSignUp creates an account and a sandbox for people who have requested one and proved their address by a
// mailed link.
type SandboxSignUp struct {
	Links interface {
		// FindSandboxRequest returns the request of a link's token. It returns Invalid in the field token if the link
		// is not valid.
		FindSandboxRequest(ctx context.Context, token string, now time.Time) (SandboxRequest, error)
		// RemoveSandboxRequest uses the link up.
		RemoveSandboxRequest(ctx context.Context, requestID string) error
	}
	Identity interface {
		SignUpVerified(ctx context.Context, email, password, displayName string) (Session, error)
		MarkVerified(ctx context.Context, userID string) error
		SignIn(ctx context.Context, email, password string) (Session, error)
	}
	Tenants   CreatedTenants
	SignIn    *SignIn
	Sandboxes *Sandboxes
}

// CheckSandboxRequest returns an error that names all wrong fields of a request, or nil.
func CheckSandboxRequest(email, name string) error {
	wrong := fields{}
	wrong.check(email != "", "email", "is required")
	wrong.checkEmail("email", email)
	checkText(wrong, "name", name, 0, maxDisplayName)
	return wrong.err()
}

// requestedSandboxes is the namespace of sandbox ids. They are derived from the request's id, so that a retry creates
// the same one.
var requestedSandboxes = uuid.MustParse("a3f6d4c9-3e0b-5c2d-9b7a-51e0c8f2d714")

// Request returns the request of a link's token. It returns Invalid in the field token if the link is not valid.
func (s *SandboxSignUp) Request(ctx context.Context, token string) (SandboxRequest, error) {
	return s.Links.FindSandboxRequest(ctx, token, s.Sandboxes.Now())
}

// Open creates the account and the sandbox. It uses an existing account with the address, and returns Unauthenticated
// if the password is wrong. A new account has the requested name, or else name, which may be empty.
//
// If a step fails, the earlier ones stay done, and a retry with the same link and password continues.
func (s *SandboxSignUp) Open(ctx context.Context, by By, token, name, password string) error {
	request, err := s.Request(ctx, token)
	if err != nil {
		return err
	}
	if request.Name == "" {
		wrong := fields{}
		wrong.check(utf8.ValidString(name), "name", "must be UTF-8")
		checkText(wrong, "name", name, 0, maxDisplayName)
		if err := wrong.err(); err != nil {
			return err
		}
		request.Name = name
	}
	session, err := s.account(ctx, request, password)
	if err != nil {
		return err
	}
	if _, err := s.SignIn.LetIn(ctx, by, session.Claims); err != nil {
		return err
	}
	by.Actor = events.Actor{Kind: events.UserActor, ID: session.UserID}
	tenantID := uuid.NewSHA1(requestedSandboxes, []byte(request.ID)).String()
	if err := s.create(ctx, by, tenantID); err != nil {
		return err
	}
	if err := s.Sandboxes.Fill(ctx, by, tenantID); err != nil {
		return err
	}
	s.SignIn.Directory.NoteVisit(session.UserID, tenantID, time.Time{})
	return s.Links.RemoveSandboxRequest(ctx, request.ID)
}

// account signs the link's owner up or in. The link proves the address, even if an earlier attempt created the account
// and could not record that.
func (s *SandboxSignUp) account(ctx context.Context, request SandboxRequest, password string) (Session, error) {
	session, err := s.Identity.SignUpVerified(ctx, request.Email, password, request.Name)
	if KindOf(err) != Conflict {
		return session, err
	}
	session, err = s.Identity.SignIn(ctx, request.Email, password)
	if err != nil || session.EmailProved() {
		return session, err
	}
	if err := CheckActive(s.SignIn.People, session.UserID); err != nil {
		return Session{}, err
	}
	if err := s.Identity.MarkVerified(ctx, session.UserID); err != nil {
		return Session{}, err
	}
	session.EmailVerified, session.EmailAssumed = true, false // the token is older
	return session, nil
}

// create creates a sandbox for the actor, unless an earlier attempt has.
func (s *SandboxSignUp) create(ctx context.Context, by By, tenantID string) error {
	created, release, err := CountCreated(ctx, s.Sandboxes.Writer, s.Tenants, by.Actor.ID)
	if err != nil {
		return err
	}
	defer release()
	tenant, _, err := Do(ctx, s.Sandboxes.Writer, by, CreateTenant{
		ID:            tenantID,
		Name:          "Sandbox",
		Creator:       by.Actor.ID,
		SandboxEndsAt: s.Sandboxes.NewEnd(),
		Created:       created,
		Environments:  FirstEnvironments(),
	})
	if KindOf(err) == Conflict && tenant.Taken {
		return nil
	}
	return err
}
