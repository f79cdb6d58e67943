package events

// Log identifies a log, so that positions of one are not taken for those of another: of another server, or of this one before a restore.
type Log struct {
	Engine string
	ID     string   // the id and the position of its first event; empty while it has none
	End    Position // of the last event; also of others' events, where the engine keeps those in the same log
}

// LogID returns the ID of the log that an event is the first of.
func LogID(first Recorded) string { return first.ID.String() + " " + first.Position.String() }

// Checkpoint is a position, and the log that it was taken from.
type Checkpoint struct {
	Engine   string
	LogID    string // empty where the log had no events, or where a release noted it that did not know of ids
	Position Position
}

// Holds reports whether a checkpoint can be of this log. It must have been read before the log was identified: the end may have moved on since. A
// checkpoint without an ID counts as of this log.
func (l Log) Holds(c Checkpoint) bool {
	return c.Engine == l.Engine && (c.LogID == "" || c.LogID == l.ID) && c.Position.Compare(l.End) <= 0
}
