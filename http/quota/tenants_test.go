package quota

import (
	"testing"
	"time"

	"flagledger/projections/snapshot"
)

// The bytes of a day are forgotten at midnight in UTC, and the bytes of a future day once the clock is set back.
func TestBytesWrittenOnADay(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	clock := func() time.Time { return now }
	q := &Tenants{Live: snapshot.New(snapshot.Options{}), Limiter: NewLimiter(Limits{}, nil, clock), Now: clock}
	q.Wrote("t", 5)
	q.Wrote("t", 7<<32)
	q.Wrote("", 7)
	q.WroteFor("", 7)
	q.WroteFor("t", 11)
	for _, step := range []struct {
		after        time.Duration
		tenant, free int
	}{{0, 7<<32 + 5, 11}, {8 * time.Hour, 7<<32 + 5, 11}, {time.Hour, 0, 0}} {
		now = now.Add(step.after)
		if tenant, free := q.WrittenToday("t"), q.FreeWrittenToday("t"); tenant != step.tenant || free != step.free {
			t.Errorf("at %v it has written %d, a creator of that name %d, want %+v", now, tenant, free, step)
		}
	}
	q.Wrote("t", 7)
	for _, want := range []int{7, 0} {
		now = now.AddDate(0, 0, -1)
		if n := q.WrittenToday("t"); n != want {
			t.Errorf("at %v, %d bytes count of the day that the clock was on", now, n)
		}
	}
}
