package eventstore

import "time"

// PageSize is how many events a full page holds.
const PageSize = pageSize

// SetPrefixes sets the streams that belong to a store.
func (s *Store) SetPrefixes(prefixes ...string) { s.prefixes = prefixes }

// SetPageWait sets how long a page waits for more events while a subscriber catches up.
func (s *Store) SetPageWait(d time.Duration) { s.pageWait = d }

// SetAnswerTimeout sets how long calls wait for a response before they look for another node, and returns the old
// value.
func (s *Store) SetAnswerTimeout(d time.Duration) (was time.Duration) {
	was, s.answerTimeout = s.answerTimeout, d
	return was
}
