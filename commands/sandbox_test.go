package commands_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/events"
)

// contents fails to list what a tenant has.
type contents struct{ err error }

func (c contents) FlagKeys(context.Context, string) ([]string, error)   { return nil, c.err }
func (c contents) ProjectIDs(context.Context, string) ([]string, error) { return nil, c.err }

// noted tells whether a cleanup is noted as a job.
type noted bool

func (n *noted) Cleanup(context.Context, commands.By, string, time.Time) (drop func(context.Context) error, err error) {
	*n = true
	return func(context.Context) error {
		*n = false
		return nil
	}, nil
}

// A cleanup that goes on by itself says so, and one that does not is not noted any more.
func TestACleanupTellsWhetherItGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	create := commands.CreateTenant{
		ID: uuid.NewString(), Name: "Sandbox", Creator: "boss", SandboxEndsAt: time.Now().Add(time.Hour), Environments: commands.FirstEnvironments(),
	}
	if _, _, err := commands.Do(t.Context(), w.writer, commands.By{}, create); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, want commands.Kind
		goesOn     bool
	}{
		{commands.TooMany, commands.Unavailable, true}, {commands.Unavailable, commands.Unavailable, true}, {commands.Conflict, commands.Conflict, false},
	} {
		var job noted
		s := &commands.Sandboxes{
			Writer: w.writer, Contents: contents{&commands.Error{Kind: c.kind, Detail: "it has not been made"}}, Jobs: &job, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		}
		err := s.Cleanup(t.Context(), commands.By{Actor: events.Actor{Kind: events.UserActor, ID: "boss"}}, create.ID)
		if refusal, ok := errors.AsType[*commands.Error](err); !ok || refusal.Kind != c.want || (refusal.Detail == "it has not been made") == c.goesOn || bool(job) != c.goesOn {
			t.Errorf("%v: got %v; a job goes on: %v", c.kind, err, job)
		}
	}
}
