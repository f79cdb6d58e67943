package evaluation

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

// revision names what an answer depends on: a version of the flag, if its environment was added later or it asked
// segments or the time, the time of the newest fact of all, and if it asked the time, that.
// A node may not know of a change yet that was recorded before the time of the evaluation, so that does not replace the
// time of the newest fact.
// On Postgres no two changes have one time. On EventStoreDB changes of different streams may: see ambiguous.
type revision struct {
	version events.Revision
	newest  time.Time // zero for the time of the version
	now     time.Time // zero if the answer does not depend on it
}

// revisionOf returns the revision of an answer in an environment.
func revisionOf(answer *evaluation.Result, in *state.Environment) revision {
	r := revision{version: answer.Version}
	if in.AddedAt.After(answer.ChangedAt) {
		r.newest = in.AddedAt
	}
	if answer.Asked {
		r.newest = slices.MaxFunc([]time.Time{answer.ChangedAt, in.AddedAt, answer.AskedAt}, time.Time.Compare)
		r.now = answer.AskedNow
	}
	return r
}

// ambiguous reports whether several of a flag, its environment and dependencies last changed at the time of the newest
// fact: the answer may have been given between two of the changes.
func (r revision) ambiguous(f *state.Flag, in *state.Environment, d *evaluation.Dependencies) bool {
	if r.newest.IsZero() {
		return false
	}
	changed := []time.Time{f.UpdatedAt, in.AddedAt}
	for _, required := range d.Required() {
		if required.State().Key != f.Key { // in a cycle, a flag leads to itself
			changed = append(changed, required.State().UpdatedAt)
		}
	}
	for _, s := range d.Segments().All() {
		changed = append(changed, s.State().UpdatedAt)
	}
	return len(slices.DeleteFunc(changed, func(at time.Time) bool { return !at.Equal(r.newest) })) > 1
}

// String returns the text of the revision.
func (r revision) String() string { return string(r.append(nil)) }

// append appends the text of the revision: 7, or 7@2026-11-22T20:33:52.350000Z with the time of the newest fact. If the
// answer depends on the time of the evaluation, that comes before it:
// 7@2026-11-28T09:00:00.000000Z~2026-11-22T20:33:52.350000Z.
func (r revision) append(b []byte) []byte {
	b = strconv.AppendUint(b, uint64(r.version), 10)
	if !r.now.IsZero() {
		b = append(b, '@')
		b = r.now.UTC().AppendFormat(b, events.RecordedFormat)
	}
	if !r.newest.IsZero() {
		separator := byte('@')
		if !r.now.IsZero() {
			separator = '~'
		}
		b = append(b, separator)
		b = r.newest.UTC().AppendFormat(b, events.RecordedFormat)
	}
	return b
}

// parseRevision reads the text of a revision. It accepts only what append writes.
func parseRevision(text string) (r revision, ok bool) {
	version, newest, later := strings.Cut(text, "@")
	now, fact, asksNow := strings.Cut(newest, "~")
	n, err := strconv.ParseUint(version, 10, 63)
	if err != nil || n == 0 {
		return r, false
	}
	r.version = events.Revision(n)
	if asksNow {
		newest = fact
		if r.now, err = time.Parse(events.RecordedFormat, now); err != nil {
			return r, false
		}
	}
	if later {
		if r.newest, err = time.Parse(events.RecordedFormat, newest); err != nil {
			return r, false
		}
	}
	return r, r.String() == text
}
