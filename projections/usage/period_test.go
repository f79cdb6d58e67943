package usage

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAlignPeriod(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 535e6, time.UTC)
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		parsed, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for _, c := range []struct {
		name             string
		step             time.Duration
		from, to         string
		wantFrom, wantTo string
		points           int
		refused          error
	}{
		{"the last 24 hours", Hourly, "", "", "2026-03-13T16:00:00Z", "2026-03-14T16:00:00Z", 24, nil},
		{"the last 30 days", Daily, "", "", "2026-02-13T00:00:00Z", "2026-03-15T00:00:00Z", 30, nil},
		{"from down and to up", Hourly, "2026-03-14T10:59:59.999Z", "2026-03-14T12:00:00.001Z", "2026-03-14T10:00:00Z", "2026-03-14T13:00:00Z", 3, nil},
		{"whole hours stay", Hourly, "2026-03-14T10:00:00Z", "2026-03-14T12:00:00Z", "2026-03-14T10:00:00Z", "2026-03-14T12:00:00Z", 2, nil},
		{"days are those of UTC", Daily, "2026-03-10T01:00:00+02:00", "2026-03-11T23:30:00-01:00", "2026-03-09T00:00:00Z", "2026-03-13T00:00:00Z", 4, nil},
		{"a part of an hour is the hour", Hourly, "2026-03-14T10:20:00Z", "2026-03-14T10:20:00.000001Z", "2026-03-14T10:00:00Z", "2026-03-14T11:00:00Z", 1, nil},
		{"the future is cut off", Hourly, "2026-03-14T14:30:00Z", "2027-01-01T00:00:00Z", "2026-03-14T14:00:00Z", "2026-03-14T16:00:00Z", 2, nil},
		{"only from", Daily, "2026-03-14T15:00:00Z", "", "2026-03-14T00:00:00Z", "2026-03-15T00:00:00Z", 1, nil},
		{"only to", Hourly, "", "2026-03-10T10:30:00Z", "2026-03-09T11:00:00Z", "2026-03-10T11:00:00Z", 24, nil},
		{"1,000 points", Hourly, "2026-02-01T00:00:00Z", "2026-03-14T16:00:00Z", "2026-02-01T00:00:00Z", "2026-03-14T16:00:00Z", 1000, nil},
		{"1,001 points", Hourly, "2026-01-31T23:59:59Z", "2026-03-14T16:00:00Z", "", "", 0, ErrLongPeriod},
		{"all time", Daily, "0000-01-01T00:00:00Z", "", "", "", 0, ErrLongPeriod},
		{"from at to", Hourly, "2026-03-14T10:00:00Z", "2026-03-14T10:00:00Z", "", "", 0, ErrEmptyPeriod},
		{"from after to in the same hour", Hourly, "2026-03-14T10:40:00Z", "2026-03-14T10:20:00Z", "", "", 0, ErrEmptyPeriod},
		{"from in the future", Hourly, "2026-03-14T15:30:00Z", "2026-03-14T16:30:00Z", "", "", 0, ErrEmptyPeriod},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := AlignPeriod(c.step, at(c.from), at(c.to), now)
			if !errors.Is(err, c.refused) {
				t.Fatalf("the error is %v, want %v", err, c.refused)
			}
			if want := (Period{c.step, at(c.wantFrom), at(c.wantTo)}); err == nil && (p != want || p.Points() != c.points) {
				t.Errorf("%v with %d points, want %v with %d", p, p.Points(), want, c.points)
			}
		})
	}
}

// A period has the hours or days of all that it was asked for and not of the future, without gaps.
func TestAPeriodHasWhatWasAskedFor(t *testing.T) {
	zone := time.FixedZone("", 3*3600+30*60)
	near := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC).
			Add(time.Duration(rapid.Int64Range(-40*int64(Daily), 40*int64(Daily)).Draw(t, "ns"))).
			In(zone)
	})
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]time.Duration{Hourly, Daily}).Draw(t, "step")
		from, to, now := near.Draw(t, "from"), near.Draw(t, "to"), near.Draw(t, "now")
		end := to
		if now.Before(end) {
			end = now
		}
		p, err := AlignPeriod(step, from, to, now)
		if empty := !from.Before(end); empty || err != nil {
			if empty != errors.Is(err, ErrEmptyPeriod) || !empty && end.Sub(from) < (MaxPoints-1)*step {
				t.Fatalf("from %v to %v is refused with %v", from, end, err)
			}
			return
		}
		if p.From.After(from) || !p.From.Add(step).After(from) || p.To.Before(end) ||
			to.Before(now) && !p.To.Add(-step).Before(end) ||
			p.To.Add(-step).After(now) {
			t.Fatalf("from %v to %v, now %v: it is %v", from, to, now, p)
		}
		_, offset := p.From.Zone()
		last := to.Add(-1)
		if to.After(now) {
			last = now
		}
		if n := p.Points(); offset != 0 || n < 1 || !p.At(n).Equal(p.To) || p.PointOf(from) != 0 || p.PointOf(last) != n-1 {
			t.Fatalf("%v has %d points, from %d to %d", p, n, p.PointOf(from), p.PointOf(last))
		}
	})
}
