package commands

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"flagledger/events"
)

// SandboxRequest is a request for a sandbox, whose link was mailed.
type SandboxRequest struct {
	ID    string
	Email string
	Name  string
}

// SandboxSignUp makes an account and a sandbox for people who have asked for one, and have shown by a mailed link that
// the address is theirs.
type SandboxSignUp struct {
	Links interface {
		// FindSandboxRequest finds a request by the token of its link. The error is Invalid in the field token where the link
		// is not good.
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

// CheckSandboxRequest tells all that is wrong with a request, nil where nothing is.
func CheckSandboxRequest(email, name string) error {
	wrong := fields{}
	wrong.check(email != "", "email", "is required")
	wrong.checkEmail("email", email)
	checkText(wrong, "name", name, 0, maxDisplayName)
	return wrong.err()
}

// requestedSandboxes is the namespace of the ids of sandboxes, which are made from the ids of requests: an attempt that
// is repeated makes the same one.
var requestedSandboxes = uuid.MustParse("a3f6d4c9-3e0b-5c2d-9b7a-51e0c8f2d714")

// Request is what a link was mailed for. The error is Invalid in the field token where the link is not good.
func (s *SandboxSignUp) Request(ctx context.Context, token string) (SandboxRequest, error) {
	return s.Links.FindSandboxRequest(ctx, token, s.Sandboxes.Now())
}

// Open makes the account and the sandbox. An account that has the address already is used: the error is Unauthenticated
// if the password is not its own. A new account has the name that the link was asked for with, or else name, which may
// be empty.
//
// If a step fails, those before it stay done. The call can be made again with the same link and password.
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
	s.SignIn.Directory.NoteUse(session.UserID, tenantID, time.Time{})
	return s.Links.RemoveSandboxRequest(ctx, request.ID)
}

// account signs up whoever has a link, or signs them in. The link shows that the address is theirs, also where an
// earlier attempt made the account and could not note that.
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
	session.EmailVerified, session.EmailAssumed = true, false // which the token, made before, does not say
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
	if KindOf(err) == Conflict && tenant.taken {
		return nil
	}
	return err
}
