package snapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	"flagledger/events"
)

// noSalts cannot be reached.
type noSalts struct{}

func (noSalts) Load(context.Context, string) ([]byte, error) { return nil, errors.New("out of reach") }

func (noSalts) Decrypt(string, []byte) ([]byte, bool) { return nil, false }

// While salts cannot be loaded, the snapshot goes on following the log, whatever loadSalts does at the moment.
func TestMissingSaltsDoNotStopTheLog(t *testing.T) {
	s := New(Options{Salts: noSalts{}})
	for _, id := range []string{"a", "b", "c"} {
		if salt := s.salts.ofSegment(id); salt != nil {
			t.Errorf("the salt is %x", salt)
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
