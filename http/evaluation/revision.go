package evaluation

import (
	"strconv"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// revision names what an answer depends on: a version of the flag and, if its environment was added later, that time.
// On Postgres no two changes have one time. On EventStoreDB they may: the revision of an answer between such two is not
// found later.
type revision struct {
	version events.Revision
	added   time.Time // zero for the time of the version
}

// revisionOf returns the revision of the answers of a version, which the flag got at a time.
func revisionOf(version events.Revision, changedAt time.Time, in state.Environment) revision {
	r := revision{version: version}
	if in.AddedAt.After(changedAt) {
		r.added = in.AddedAt
	}
	return r
}

// String returns the text of the revision.
func (r revision) String() string { return string(r.append(nil)) }

// append appends the text of the revision: 7, or 7@2026-11-22T20:33:52.350000Z.
func (r revision) append(b []byte) []byte {
	b = strconv.AppendUint(b, uint64(r.version), 10)
	if !r.added.IsZero() {
		b = append(b, '@')
		b = r.added.UTC().AppendFormat(b, events.RecordedFormat)
	}
	return b
}

// parseRevision reads the text of a revision. It accepts only what append writes.
func parseRevision(text string) (r revision, ok bool) {
	version, added, later := strings.Cut(text, "@")
	n, err := strconv.ParseUint(version, 10, 63)
	if err != nil || n == 0 {
		return r, false
	}
	r.version = events.Revision(n)
	if later {
		if r.added, err = time.Parse(events.RecordedFormat, added); err != nil {
			return r, false
		}
	}
	return r, r.String() == text
}
