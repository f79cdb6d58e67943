package snapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

// noSalts cannot be reached.
type noSalts struct{}

func (noSalts) Load(context.Context, string) ([]byte, error) { return nil, errors.New("out of reach") }

func (noSalts) Decrypt(string, []byte) ([]byte, bool) { return nil, false }

// While salts cannot be loaded, the snapshot goes on following the log, whatever loadSalts does at the moment.
func TestMissingSaltsDoNotStopTheLog(t *testing.T) {
	s := New(Options{Salts: noSalts{}})
	for _, id := range []string{"a", "b", "c"} {
		if salt, missing := s.salts.ofSegment(id); salt != nil || !missing {
			t.Errorf("the salt is %x, missing %v", salt, missing)
		}
		if len(s.Troubles(time.Now())) == 0 {
			t.Error("nobody is told")
		}
		s.salts.failed.Store(false) // as loadMissingSalts does while it has not received yet
	}
}

func TestSaltsGoWithTheirTenant(t *testing.T) {
	s := newScribe()
	s.page(events.SegmentStream("t", "k"),
		events.SegmentCreated{TenantID: "t", Key: "k", ID: "k", Name: "k", Private: true, SaltID: "s"})
	s.salts.known.Store("s", salt{plain: []byte("p")})
	s.page(events.TenantStream("t"), events.TenantDeleted{})
	if _, known := s.salts.known.Load("s"); known {
		t.Error("the salt of a deleted tenant stays")
	}
}

// someSalts cannot be decrypted with the id "damaged".
type someSalts struct{}

func (someSalts) Load(_ context.Context, id string) ([]byte, error) { return []byte(id), nil }

func (someSalts) Decrypt(id string, _ []byte) ([]byte, bool) { return []byte(id), id != "damaged" }

// Answers that asked a segment without its salt have no revision, as they are others once it is there. The salts of
// other segments are loaded all the same.
func TestDamagedSaltLeavesOthers(t *testing.T) {
	s := &scribe{Snapshot: New(Options{Salts: someSalts{}})}
	s.page(events.TenantStream("t"), events.TenantCreated{ID: "t"}, events.EnvironmentAdded{Environment: production})
	tenant, _ := s.Tenant("t")
	for _, id := range []string{"damaged", "sound"} {
		s.page(events.SegmentStream("t", id),
			events.SegmentCreated{TenantID: "t", Key: id, ID: id, Private: true, SaltID: id})
		s.flag("t", id, three, on, ruled(asksFor(id)))
	}
	changedAt := func(key string) time.Time {
		f, d, _ := tenant.FlagWithDependencies(key)
		f.State().UpdatedAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		r, err := f.Evaluate(production.ID, &evaluation.Context{TargetingKey: "u", Dependencies: d})
		if err != nil {
			t.Fatal(err)
		}
		return r.ChangedAt
	}
	if !changedAt("damaged").IsZero() || changedAt("sound").IsZero() {
		t.Error("the answer without the salt has a revision, or that with one has none")
	}
	s.salts.known.Delete("sound")
	if err := s.loadMissingSalts(t.Context()); !errors.Is(err, errSaltSecret) {
		t.Errorf("the error is %v", err)
	}
	if known, _ := s.salts.known.Load("sound"); string(known.plain) != "sound" {
		t.Error("the other salt is not loaded")
	}
}
