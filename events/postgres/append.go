package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

const (
	groupSize     = 128             // appends in one transaction
	groupBytes    = 4 << 20         // of JSON; a larger group takes no more appends
	commitTimeout = 5 * time.Second // of one group
)

// pending is an append that waits for the committer.
type pending struct {
	stream   string
	expected events.Revision
	events   []events.Stored
	bytes    int
	done     chan outcome // buffered: the committer never waits for a caller
}

type outcome struct {
	events.Appended
	err error
}

// Append implements events.Store. Concurrent appends are committed in one transaction.
func (s *Store) Append(
	ctx context.Context, stream string, expected events.Revision, batch []events.Event,
) (events.Appended, error) {
	if len(batch) == 0 {
		return events.Appended{}, errors.New("append without events")
	}
	p := &pending{stream: stream, expected: expected, done: make(chan outcome, 1)}
	for _, e := range batch {
		stored, err := events.Encode(e)
		if err != nil {
			return events.Appended{}, err
		}
		if _, copied := e.Fact.(events.Stored); !copied && len(stored.Data) >= largeEvent {
			s.recent.prepare(stored)
		}
		p.events = append(p.events, stored)
		p.bytes += len(stored.Data) + len(stored.Metadata)
	}
	select {
	case s.appends <- p:
	case <-ctx.Done():
		return events.Appended{}, fmt.Errorf("%w: %w", events.ErrUnavailable, ctx.Err())
	case <-s.closing:
		return events.Appended{}, fmt.Errorf("%w: closed", events.ErrUnavailable)
	}
	select {
	case o := <-p.done:
		return o.Appended, o.err
	case <-ctx.Done():
		return events.Appended{}, fmt.Errorf("%w: %w", events.ErrUnavailable, ctx.Err())
	}
}

// commit runs the committer until the Store closes: it applies all waiting appends together.
func (s *Store) commit() {
	defer close(s.finished)
	for {
		var group []*pending
		select {
		case p := <-s.appends:
			group = append(group, p)
		case <-s.closing:
			return
		}
		bytes := group[0].bytes
	joining:
		for len(group) < groupSize && bytes < groupBytes {
			select {
			case p := <-s.appends:
				group = append(group, p)
				bytes += p.bytes
			default:
				break joining
			}
		}
		s.apply(group)
	}
}

// apply commits a group and sends each append its outcome. If the server refuses the group, it tries the appends one
// by one, so that only the faulty ones fail.
func (s *Store) apply(group []*pending) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	results, err := s.commitGroup(ctx, group)
	if err != nil && len(group) > 1 && !Unavailable(err) {
		for _, p := range group {
			s.apply([]*pending{p})
		}
		return
	}
	for i, p := range group {
		switch {
		case err != nil:
			p.done <- outcome{err: classify(err)}
		case results[i].position == nil:
			p.done <- outcome{err: events.ErrConflict}
		default:
			times := make([]time.Time, len(p.events))
			for n, e := range p.events {
				times[n] = e.RecordedTime(results[i].recorded.UTC())
			}
			p.done <- outcome{Appended: events.Appended{Position: at(*results[i].position), Recorded: times}}
		}
	}
}

// applied is the database's row for an append: null if its stream is at a different revision.
type applied struct {
	position *uint64
	recorded *time.Time
}

// acceptOf returns the latest time of the copies in a group if their own AcceptUntil allow it. Otherwise it returns
// nil: the database then checks all against its clock, and apply tries a refused group one by one.
func acceptOf(group []*pending) (latest *time.Time) {
	for _, p := range group {
		for _, e := range p.events {
			switch {
			case e.At.IsZero():
			case e.At.After(e.AcceptUntil):
				return nil
			case latest == nil || e.At.After(*latest):
				latest = &e.At
			}
		}
	}
	return latest
}

// commitGroup commits a group in one transaction, and returns the row of each append.
func (s *Store) commitGroup(ctx context.Context, group []*pending) ([]applied, error) {
	var (
		streams        []string
		expected       []int64
		counts         []int32
		ids            []uuid.UUID
		names          []string
		versions       []int16
		data, metadata [][]byte
		recorded       []*time.Time // nil if no event is a copy
	)
	for _, p := range group {
		streams = append(streams, p.stream)
		expected = append(expected, int64(p.expected))
		counts = append(counts, int32(len(p.events)))
		for _, e := range p.events {
			ids = append(ids, e.ID)
			names = append(names, e.Name)
			versions = append(versions, int16(e.Version))
			data = append(data, e.Data)
			metadata = append(metadata, e.Metadata)
			if !e.At.IsZero() {
				recorded = append(recorded, make([]*time.Time, len(ids)-1-len(recorded))...)
				recorded = append(recorded, &e.At)
			}
		}
	}
	rows, err := s.writing.Query(ctx,
		"select applied, recorded_at from events.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", streams, expected, counts,
		ids, names, versions, data, metadata, recorded, acceptOf(group))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	results := make([]applied, 0, len(group))
	for rows.Next() {
		var a applied
		if err := rows.Scan(&a.position, &a.recorded); err != nil {
			return nil, err
		}
		results = append(results, a)
	}
	// The rows come before the commit: its result is known only now.
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(results) != len(group) {
		return nil, fmt.Errorf("append: %d answers for %d appends", len(results), len(group))
	}
	return results, nil
}
