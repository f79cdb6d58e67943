package queries

import (
	"errors"
	"strconv"
	"time"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

// Moment is a moment in the life of a flag: the one at which it got a version, or else a time. An event belongs to a
// time if the store had recorded it by then.
type Moment struct {
	Version events.Revision // 0 where a time is meant
	At      time.Time
}

// Before reports whether the moment is before an event.
func (m Moment) Before(r events.Recorded) bool {
	if m.Version > 0 {
		return r.Revision > m.Version
	}
	return r.At.After(m.At)
}

// Time returns the moment as a time. f is the flag at the moment: a version's time is when the store recorded it.
func (m Moment) Time(f state.Flag) time.Time {
	if m.Version > 0 {
		return f.UpdatedAt
	}
	return m.At
}

// What ParseTime and ParseMoment refuse texts with; WaitUntilPast refuses times with ErrFuture, too.
var (
	ErrNotTime   = errors.New("must be a time of RFC 3339, such as 2026-03-14T15:09:26.535Z")
	ErrNotMoment = errors.New("must be a version, or a time of RFC 3339, such as 2026-03-14T15:09:26.535Z")
	ErrFuture    = errors.New("must not be in the future")
)

// maxClockLag is by how much, at most, this node's clock may be behind the store's.
const maxClockLag = time.Minute

// ParseTime reads a time that is not in the future, give or take maxClockLag: the store's clock decides, which
// WaitUntilPast asks. It returns ErrNotTime or ErrFuture.
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

// ParseMoment reads a version of a flag, or a time, as ParseTime does.
func ParseMoment(text string, now time.Time) (m Moment, err error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return Moment{Version: events.Revision(n)}, nil
	}
	if m.At, err = ParseTime(text, now); errors.Is(err, ErrNotTime) {
		err = ErrNotMoment
	}
	return m, err
}
