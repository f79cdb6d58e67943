package postgres

import (
	"time"

	"flagledger/events"
)

// SetPollInterval sets how long a subscription waits for a notification before it polls.
func (s *Store) SetPollInterval(d time.Duration) { s.pollInterval = d }

// ReadConnections returns how many read connections were acquired in total, and how many are in use.
func (s *Store) ReadConnections() (ever int64, now int32) {
	stat := s.pool.Stat()
	return stat.AcquireCount(), stat.AcquiredConns()
}

// AppendGroup appends one event to each of several new streams in one commit, as the committer does, and returns their
// errors.
func (s *Store) AppendGroup(streams []string, e func() events.Event) ([]error, error) {
	var group []*pending
	for _, stream := range streams {
		stored, err := events.Encode(e())
		if err != nil {
			return nil, err
		}
		group = append(group, &pending{stream: stream, events: []events.Stored{stored}, done: make(chan outcome, 1)})
	}
	s.apply(group)
	errs := make([]error, len(group))
	for i, p := range group {
		errs[i] = (<-p.done).err
	}
	return errs, nil
}
