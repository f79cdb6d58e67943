package node

import (
	"context"
	"fmt"
	"log/slog"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/identity/firebase"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/http"
)

// Audience is the audience of the local identity provider's tokens.
const Audience = "flagledger"

// provider is an identity provider.
type provider interface {
	commands.Identity
	jobs.LinkMailer
}

// openIdentity opens Firebase if a project is set, and the local identity provider otherwise. While run runs,
// Firebase's provider calls end for sessions that have ended there, and erase for people whose account was deleted
// there.
func openIdentity(
	ctx context.Context, c settings.Config, s stores, mailer commands.Mailer,
	end func(context.Context, commands.EndSessions) error, erase func(ctx context.Context, userID string) error,
	log *slog.Logger,
) (p provider, run func(context.Context), err error) {
	if c.Firebase.ProjectID != "" {
		outside, err := openFirebase(ctx, c, s.links, end, erase, log)
		if err != nil {
			return nil, nil, err
		}
		return outside, outside.Run, nil
	}
	return local.New(s.pool, local.Options{
		Keys:                 s.signing,
		Issuer:               c.PublicURL,
		Audience:             Audience,
		AssumeEmailsVerified: c.Environment == "development",
		Links:                s.links,
		Mailer:               mailer,
		Now:                  c.Now,
		HashMemory:           c.HashMemory,
		Hash:                 http.NewHashing(c.WaitTimeout).Run,
	}), func(context.Context) {}, nil
}

func openFirebase(
	ctx context.Context, c settings.Config, links *jobs.Links, end func(context.Context, commands.EndSessions) error,
	erase func(ctx context.Context, userID string) error, log *slog.Logger,
) (*firebase.Provider, error) {
	p, err := firebase.New(ctx, firebase.Options{
		ProjectID:  c.Firebase.ProjectID,
		APIKey:     c.Firebase.APIKey,
		Emulator:   c.Firebase.EmulatorHost,
		End:        end,
		Gone:       erase,
		Links:      links,
		CheckEvery: c.Firebase.CheckEvery,
		Now:        c.Now,
		Log:        log,
	})
	if err != nil {
		return nil, fmt.Errorf("FIREBASE_PROJECT_ID needs GOOGLE_APPLICATION_CREDENTIALS: %w", err)
	}
	return p, nil
}
