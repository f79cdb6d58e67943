package postgres

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/migrations/pgtest"
)

// Appends in one commit are each accepted by their own deadlines.
func TestACopyIsAcceptedByItsOwnDeadline(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.Migrated(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	at := time.Now().UTC().Truncate(time.Microsecond).Add(time.Hour)
	copied := func(acceptUntil time.Time) events.Stored {
		return events.Stored{
			ID:          uuid.New(),
			Name:        "project.deleted",
			Version:     1,
			Data:        []byte("{}"),
			Metadata:    []byte("{}"),
			At:          at,
			AcceptUntil: acceptUntil,
		}
	}
	var group []*pending
	for _, list := range [][]events.Stored{
		{copied(at)}, {copied(time.Time{})}, {copied(at.Add(-time.Second))}, {copied(at.Add(time.Hour))}, {copied(at), copied(time.Time{})},
	} {
		group = append(group, &pending{stream: "project-" + uuid.NewString(), events: list, done: make(chan outcome, 1)})
	}
	s.apply(group)
	for i, want := range []error{nil, events.ErrAhead, events.ErrAhead, nil, events.ErrAhead} {
		if got := <-group[i].done; !errors.Is(got.err, want) {
			t.Errorf("append %d: %v, want %v", i, got.err, want)
		}
	}
}
