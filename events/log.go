package events

import "context"

// Log identifies a log, so that positions of different logs are not confused, such as after a restore or on a
// different server.
type Log struct {
	Engine string
	ID     string   // the id and position of the first event; empty before it
	End    Position // of the last event, including others' events if the engine has them in the same log
}

// LogID returns the ID of a log by its first event.
func LogID(first Recorded) string { return first.ID.String() + " " + first.Position.String() }

// EventRef identifies an event. After a restore, a different event may be at the same place.
type EventRef struct {
	Stream   string   `json:"stream"`
	Revision Revision `json:"revision"`
	ID       string   `json:"id"`
}

// RefTo returns the reference to an event.
func RefTo(e Recorded) EventRef { return EventRef{e.Stream, e.Revision, e.ID.String()} }

// LogPosition is a position together with what identifies the log up to it.
type LogPosition struct {
	Engine   string
	LogID    string // empty if the log had no events, or in an old release's record
	Position Position
	// Last is the last event up to the position; empty if unknown, or in an old release's record.
	Last EventRef
}

// After returns the position after the following events, at next.
func (p LogPosition) After(list []Recorded, next Position) LogPosition {
	if n := len(list); n > 0 {
		if p.LogID == "" { // the log was empty
			p.LogID = LogID(list[0])
		}
		p.Last = RefTo(list[n-1])
	}
	p.Position = next
	return p
}

// Holds reports whether the store's log holds everything up to a position; unknown parts count as matching. Read the
// position before identifying the log, because the end may have moved on since.
func (l Log) Holds(ctx context.Context, store Store, p LogPosition) (bool, error) {
	if p.Engine != l.Engine || p.LogID != "" && p.LogID != l.ID || p.Position.Compare(l.End) > 0 {
		return false, nil
	}
	if p.Last == (EventRef{}) {
		return true, nil
	}
	for e, err := range store.Read(ctx, p.Last.Stream, p.Last.Revision) {
		return err == nil && RefTo(e) == p.Last, err
	}
	return false, nil
}
