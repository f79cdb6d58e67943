package queries

import (
	"errors"
	"fmt"
	"time"

	"flagledger/events"
)

// The lengths of a point of metrics.
const (
	Hourly = time.Hour
	Daily  = 24 * time.Hour
)

// MaxPoints is the most that metrics have.
const MaxPoints = 1000

// Period is whole hours or days in UTC, one point of metrics each.
type Period struct {
	Step     time.Duration // Hourly or Daily
	From, To time.Time     // To is not part of it
}

// What AlignPeriod refuses.
var (
	ErrEmptyPeriod = errors.New("must be before to, and in the past")
	ErrLongPeriod  = fmt.Errorf("leads to more than %s points", events.CountText(MaxPoints))
)

// AlignPeriod returns the whole hours or days that the time between from and to touches. Without from, they are 24
// hours or 30 days; without to, or with one in the future, the last is the running one. The error is ErrEmptyPeriod or
// ErrLongPeriod.
func AlignPeriod(step time.Duration, from, to, now time.Time) (Period, error) {
	p := Period{Step: step, To: now.UTC().Truncate(step).Add(step)}
	end := now
	if !to.IsZero() && !to.After(now) {
		end, p.To = to, to.UTC().Truncate(step)
		if p.To.Before(to) {
			p.To = p.To.Add(step)
		}
	}
	switch {
	case from.IsZero() && step == Daily:
		p.From = p.To.AddDate(0, 0, -30)
	case from.IsZero():
		p.From = p.To.Add(-24 * time.Hour)
	case !from.Before(end):
		return Period{}, ErrEmptyPeriod
	default:
		p.From = from.UTC().Truncate(step)
	}
	if p.To.Sub(p.From) > MaxPoints*step {
		return Period{}, ErrLongPeriod
	}
	return p, nil
}

// Points is how many hours or days the period has.
func (p Period) Points() int { return int(p.To.Sub(p.From) / p.Step) }

// At is when the hour or day of a point begins.
func (p Period) At(point int) time.Time { return p.From.Add(time.Duration(point) * p.Step) }

// PointOf is the point that a time of the period belongs to.
func (p Period) PointOf(at time.Time) int { return int(at.Sub(p.From) / p.Step) }
