package commands_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/sandbox"
	"flagledger/commands/writer"
	"flagledger/events"
)

// contents fails to list the content of a tenant.
type contents struct{ err error }

func (c contents) FlagProjects(context.Context, string) (map[string]string, error) { return nil, c.err }
func (c contents) ProjectIDs(context.Context, string) ([]string, error)            { return nil, c.err }

// noted records whether a cleanup has a job.
type noted bool

func (n *noted) NoteCleanup(
	context.Context, writer.By, string, time.Time,
) (drop func(context.Context) error, err error) {
	*n = true
	return func(context.Context) error {
		*n = false
		return nil
	}, nil
}

// A cleanup that continues in a job reports so; a completed one has no job any more.
func TestACleanupTellsWhetherItGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	create := commands.CreateTenant{
		ID:            uuid.NewString(),
		Name:          "Sandbox",
		Creator:       "boss",
		SandboxEndsAt: time.Now().Add(time.Hour),
		Environments:  commands.FirstEnvironments(),
	}
	if _, _, err := writer.Do(t.Context(), w.writer, writer.By{}, create); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, want commands.Kind
		goesOn     bool
	}{
		{commands.TooMany, commands.Unavailable, true}, {commands.Unavailable, commands.Unavailable, true}, {commands.Conflict, commands.Conflict, false},
	} {
		var job noted
		s := &sandbox.Sandboxes{
			Writer:   w.writer,
			Contents: contents{&commands.Error{Kind: c.kind, Detail: "it has not been made"}},
			Jobs:     &job,
			Now:      time.Now,
			Log:      slog.New(slog.DiscardHandler),
		}
		err := s.Cleanup(t.Context(), writer.By{Actor: events.Actor{Kind: events.UserActor, ID: "boss"}}, create.ID)
		if refusal, ok := errors.AsType[*commands.Error](
			err,
		); !ok || refusal.Kind != c.want || (refusal.Detail == "it has not been made") == c.goesOn ||
			bool(job) != c.goesOn {
			t.Errorf("%v: got %v; a job goes on: %v", c.kind, err, job)
		}
	}
}

// lateFlag is the content of a tenant with one project, in which a flag is created after the first list of flags.
type lateFlag struct {
	project string
	listed  int
}

func (c *lateFlag) FlagProjects(context.Context, string) (map[string]string, error) {
	if c.listed++; c.listed == 1 {
		return nil, nil
	}
	return map[string]string{"late": c.project}, nil
}

func (c *lateFlag) ProjectIDs(context.Context, string) ([]string, error) {
	return []string{c.project}, nil
}

// neverRestarted is a meter without a completed cleanup.
type neverRestarted struct{}

func (neverRestarted) Restart(context.Context, string, time.Time) error { return nil }
func (neverRestarted) RestartedSince(context.Context, string, time.Time) (bool, error) {
	return false, nil
}

func TestACleanupKeepsTheProjectOfAFlagThatIsMadeMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := writer.By{Actor: events.Actor{Kind: events.UserActor, ID: "boss"}}
	create := commands.CreateTenant{
		ID:            uuid.NewString(),
		Name:          "Sandbox",
		Creator:       "boss",
		SandboxEndsAt: time.Now().Add(time.Hour),
		Environments:  commands.FirstEnvironments(),
	}
	if _, _, err := writer.Do(t.Context(), w.writer, by, create); err != nil {
		t.Fatal(err)
	}
	project := commands.CreateProject{ID: uuid.NewString(), TenantID: create.ID, Name: "own"}
	if _, _, err := writer.Do(t.Context(), w.writer, by, project); err != nil {
		t.Fatal(err)
	}
	s := &sandbox.Sandboxes{
		Writer:    w.writer,
		Directory: w.directory,
		Contents:  &lateFlag{project: project.ID},
		Meter:     neverRestarted{},
		Jobs:      new(noted),
		Now:       func() time.Time { return time.Now().Add(time.Second) },
		Log:       slog.New(slog.DiscardHandler),
	}
	if err := s.Cleanup(t.Context(), by, create.ID); err != nil {
		t.Fatal(err)
	}
	if names := w.facts(t, events.ProjectStream(project.ID)); len(names) != 1 {
		t.Errorf("the facts of the project: %v", names)
	}
}
