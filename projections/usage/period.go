package usage

import (
	"errors"
	"fmt"
	"time"

	"flagledger/events"
)

// Lengths of a point of metrics.
const (
	Hourly = time.Hour
	Daily  = 24 * time.Hour
)

// MaxPoints limits the points of metrics.
const MaxPoints = 1000

// Period is a range of whole hours or days in UTC, one point of metrics each.
type Period struct {
	Step     time.Duration // Hourly or Daily
	From, To time.Time     // To is exclusive
}

// Errors of AlignPeriod.
var (
	ErrEmptyPeriod = errors.New("must be before to, and in the past")
	ErrLongPeriod  = fmt.Errorf("leads to more than %s points", events.CountText(MaxPoints))
)

// AlignPeriod returns the whole hours or days between from and to. from defaults to 24 hours or 30 days ago,
// and the end to now. The error is ErrEmptyPeriod or ErrLongPeriod.
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

// Points returns the number of hours or days.
func (p Period) Points() int { return int(p.To.Sub(p.From) / p.Step) }

// At returns the start of a point.
func (p Period) At(point int) time.Time { return p.From.Add(time.Duration(point) * p.Step) }

// PointOf returns the point of a time in the period.
func (p Period) PointOf(at time.Time) int { return int(at.Sub(p.From) / p.Step) }
