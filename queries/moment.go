package queries

import (
	"errors"
	"strconv"
	"time"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

// Moment is a version of a flag or a time. An event belongs to a time if the store had recorded it by then.
type Moment struct {
	Version events.Revision // 0 for a time
	At      time.Time
}

// Before reports whether the moment is before an event.
func (m Moment) Before(r events.Recorded) bool {
	if m.Version > 0 {
		return r.Revision > m.Version
	}
	return r.At.After(m.At)
}

// Time returns the moment as a time. f is the flag at the moment; a version's time is when the store recorded it.
func (m Moment) Time(f state.Flag) time.Time {
	if m.Version > 0 {
		return f.UpdatedAt
	}
	return m.At
}

// Errors of ParseTime and ParseMoment. WaitUntilPast also returns ErrFuture.
var (
	ErrNotTime   = errors.New("must be a time of RFC 3339, such as 2026-03-14T15:09:26.535Z")
	ErrNotMoment = errors.New("must be a version, or a time of RFC 3339, such as 2026-03-14T15:09:26.535Z")
	ErrFuture    = errors.New("must not be in the future")
)

// maxClockLag limits how far this node's clock may be behind the store's.
const maxClockLag = time.Minute

// ParseTime reads a time that is at most maxClockLag in the future; WaitUntilPast then checks it by the store's clock.
// It returns ErrNotTime or ErrFuture.
func ParseTime(text string, now time.Time) (at time.Time, err error) {
	at, readable := rules.ParseTime(text)
	switch {
	case !readable:
		err = ErrNotTime
	case at.After(now.Add(maxClockLag)):
		err = ErrFuture
	}
	return at, err
}

// ParseMoment reads a version of a flag or, as ParseTime does, a time.
func ParseMoment(text string, now time.Time) (m Moment, err error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return Moment{Version: events.Revision(n)}, nil
	}
	if m.At, err = ParseTime(text, now); errors.Is(err, ErrNotTime) {
		err = ErrNotMoment
	}
	return m, err
}
