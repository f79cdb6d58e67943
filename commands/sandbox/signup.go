package sandbox

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
)

// Request is a request for a sandbox whose link was mailed.
type Request struct {
	ID    string
	Email string
	Name  string
}

// SignUp creates an account and a sandbox for people who have requested one and proved their address by a
// mailed link.
type SignUp struct {
	Links interface {
		// FindSandboxRequest returns the request of a link's token. It returns Invalid in the field token if the link
		// is not valid.
		FindSandboxRequest(ctx context.Context, token string, now time.Time) (Request, error)
		// RemoveSandboxRequest uses the link up.
		RemoveSandboxRequest(ctx context.Context, requestID string) error
	}
	Identity interface {
		SignUpVerified(ctx context.Context, email, password, displayName string) (people.Session, error)
		MarkVerified(ctx context.Context, userID string) error
		SignIn(ctx context.Context, email, password string) (people.Session, error)
	}
	Tenants   writer.CreatedTenants
	SignIn    *people.SignIn
	Sandboxes *Sandboxes
}

// CheckRequest returns an error that names all wrong fields of a request, or nil.
func CheckRequest(email, name string) error {
	wrong := commands.FieldErrors{}
	wrong.Check(email != "", "email", "is required")
	wrong.CheckEmail("email", email)
	commands.CheckText(wrong, "name", name, 0, people.MaxDisplayName)
	return wrong.Err()
}

// requestedSandboxes is the namespace of sandbox ids. They are derived from the request's id, so that a retry creates
// the same one.
var requestedSandboxes = uuid.MustParse("a3f6d4c9-3e0b-5c2d-9b7a-51e0c8f2d714")

// Request returns the request of a link's token. It returns Invalid in the field token if the link is not valid.
func (s *SignUp) Request(ctx context.Context, token string) (Request, error) {
	return s.Links.FindSandboxRequest(ctx, token, s.Sandboxes.Now())
}

// Open creates the account and the sandbox. It uses an existing account with the address, and returns Unauthenticated
// if the password is wrong. A new account has the requested name, or else name, which may be empty.
//
// If a step fails, the earlier ones stay done, and a retry with the same link and password continues.
func (s *SignUp) Open(ctx context.Context, by writer.By, token, name, password string) error {
	request, err := s.Request(ctx, token)
	if err != nil {
		return err
	}
	if request.Name == "" {
		wrong := commands.FieldErrors{}
		wrong.Check(utf8.ValidString(name), "name", "must be UTF-8")
		commands.CheckText(wrong, "name", name, 0, people.MaxDisplayName)
		if err := wrong.Err(); err != nil {
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
func (s *SignUp) account(ctx context.Context, request Request, password string) (people.Session, error) {
	session, err := s.Identity.SignUpVerified(ctx, request.Email, password, request.Name)
	if commands.KindOf(err) != commands.Conflict {
		return session, err
	}
	session, err = s.Identity.SignIn(ctx, request.Email, password)
	if err != nil || session.EmailProved() {
		return session, err
	}
	if err := people.CheckActive(s.SignIn.People, session.UserID); err != nil {
		return people.Session{}, err
	}
	if err := s.Identity.MarkVerified(ctx, session.UserID); err != nil {
		return people.Session{}, err
	}
	session.EmailVerified, session.EmailAssumed = true, false // the token is older
	return session, nil
}

// create creates a sandbox for the actor, unless an earlier attempt has.
func (s *SignUp) create(ctx context.Context, by writer.By, tenantID string) error {
	created, release, err := writer.CountCreated(ctx, s.Sandboxes.Writer, s.Tenants, by.Actor.ID)
	if err != nil {
		return err
	}
	defer release()
	tenant, _, err := writer.Do(ctx, s.Sandboxes.Writer, by, commands.CreateTenant{
		ID:            tenantID,
		Name:          "Sandbox",
		Creator:       by.Actor.ID,
		SandboxEndsAt: s.Sandboxes.NewEnd(),
		Created:       created,
		Environments:  commands.FirstEnvironments(),
	})
	if commands.KindOf(err) == commands.Conflict && tenant.Taken {
		return nil
	}
	return err
}
