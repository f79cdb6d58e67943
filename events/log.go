package events

import "context"

// Log identifies a log, so that positions of one are not taken for those of another: of another server, or of this one
// before a restore.
type Log struct {
	Engine string
	ID     string   // the id and the position of its first event; empty while it has none
	End    Position // of the last event; also of others' events, where the engine keeps those in the same log
}

// LogID returns the ID of the log that an event is the first of.
func LogID(first Recorded) string { return first.ID.String() + " " + first.Position.String() }

// EventRef names an event. Where a log was restored from an older copy, another event may stand at the same place.
type EventRef struct {
	Stream   string   `json:"stream"`
	Revision Revision `json:"revision"`
	ID       string   `json:"id"`
}

// RefTo returns the name of an event.
func RefTo(e Recorded) EventRef { return EventRef{e.Stream, e.Revision, e.ID.String()} }

// LogPosition is a position, and what identifies the log up to it.
type LogPosition struct {
	Engine   string
	LogID    string // empty where the log had no events, or where a release noted it that did not know of ids
	Position Position
	// the last event up to the position; empty where nobody has read that, or where a release noted it that did not know
	// of it
	Last EventRef
}

// After returns the position after events that follow this one, where the log goes on from next.
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

// Holds reports whether the log, which is that of a store, holds all up to a position; what is empty in that counts as
// of this log. The position must have been read before the log was identified: the end may have moved on since.
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
