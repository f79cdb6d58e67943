package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/identity/firebase"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/keys"
	"flagledger/http"
)

// Audience is the audience of the local identity provider's tokens.
const Audience = "flagledger"

// FirebaseSettings name the Firebase project of the people; the Admin SDK also reads some of them.
type FirebaseSettings struct {
	ProjectID    string `env:"FIREBASE_PROJECT_ID"`
	APIKey       string `env:"FIREBASE_API_KEY"`
	EmulatorHost string `env:"FIREBASE_AUTH_EMULATOR_HOST"`
	Credentials  string `env:"GOOGLE_APPLICATION_CREDENTIALS"` // a file

	CheckEvery time.Duration `env:"-"` // the provider's own if 0
}

var firebaseProject = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]*$`)

func (s FirebaseSettings) check(environment string) error {
	if s.EmulatorHost != "" && environment == "production" {
		return errors.New(
			"FIREBASE_AUTH_EMULATOR_HOST must not be set in production: anyone can forge the emulator's tokens",
		)
	}
	if s.ProjectID != "" && !firebaseProject.MatchString(s.ProjectID) {
		return fmt.Errorf("FIREBASE_PROJECT_ID must be the id of a Firebase project, such as my-project-1234; it is %q",
			s.ProjectID)
	}
	if s.ProjectID != "" && s.Credentials != "" {
		text, err := os.ReadFile(s.Credentials)
		if err != nil {
			return fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: %w", err)
		}
		if !json.Valid(text) {
			return fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS must name the JSON file of a service account; %s is none",
				s.Credentials)
		}
	}
	return nil
}

// provider is an identity provider.
type provider interface {
	commands.Identity
	jobs.LinkMailer
}

// openIdentity opens Firebase if a project is set, and the local identity provider otherwise. While run runs,
// Firebase's provider calls end for sessions that have ended there, and erase for people whose account was deleted
// there.
func openIdentity(
	ctx context.Context, c Config, pool *pgxpool.Pool, signing *keys.Keys, links *jobs.Links, mailer commands.Mailer,
	end func(context.Context, commands.EndSessions) error, erase func(ctx context.Context, userID string) error,
	log *slog.Logger,
) (p provider, run func(context.Context), err error) {
	if c.Firebase.ProjectID == "" {
		return local.New(pool, local.Options{
			Keys:                 signing,
			Issuer:               c.PublicURL,
			Audience:             Audience,
			AssumeEmailsVerified: c.Environment == "development",
			Links:                links,
			Mailer:               mailer,
			Now:                  c.Now,
			HashMemory:           c.HashMemory,
			Hash:                 http.NewHashing(c.WaitTimeout).Run,
		}), func(context.Context) {}, nil
	}
	outside, err := openFirebase(ctx, c, firebase.Options{End: end, Gone: erase, Links: links, Log: log})
	if err != nil {
		return nil, nil, err
	}
	return outside, outside.Run, nil
}

// openFirebase opens Firebase.
func openFirebase(ctx context.Context, c Config, o firebase.Options) (*firebase.Provider, error) {
	o.ProjectID, o.APIKey, o.Emulator = c.Firebase.ProjectID, c.Firebase.APIKey, c.Firebase.EmulatorHost
	o.CheckEvery, o.Now = c.Firebase.CheckEvery, c.Now
	p, err := firebase.New(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("FIREBASE_PROJECT_ID needs GOOGLE_APPLICATION_CREDENTIALS: %w", err)
	}
	return p, nil
}
