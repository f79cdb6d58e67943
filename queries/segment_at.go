package queries

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/maypok86/otter/v2"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
)

// maxSegmentStates limits the cached historical states of segments, in bytes.
const maxSegmentStates = 64 << 20

// segmentVersion identifies a state of a segment.
type segmentVersion struct {
	stream  string
	version events.Revision
}

// segmentStates caches historical states of segments. Nothing changes them.
type segmentStates = otter.Cache[segmentVersion, *state.Segment]

func newSegmentStates() *segmentStates {
	return otter.Must(&otter.Options[segmentVersion, *state.Segment]{
		MaximumWeight: maxSegmentStates,
		Weigher: func(_ segmentVersion, s *state.Segment) uint32 {
			return uint32(min(s.Size(), math.MaxUint32))
		},
	})
}

// SegmentAt returns a segment at a moment. It returns ErrNotFound if the key had no segment at that moment, or never
// that version. For a time, call WaitUntilCurrent for "segment." first. The caller must not change the segment.
func (q *Queries) SegmentAt(
	ctx context.Context, tenant *snapshot.Tenant, key string, m Moment,
) (*state.Segment, error) {
	s, err := q.SegmentStateAt(ctx, tenant, key, m)
	if err == nil && !s.Exists {
		err = ErrNotFound
	}
	return s, err
}

// SegmentStateAt works like SegmentAt, but returns Exists false for a segment that was deleted at the moment.
func (q *Queries) SegmentStateAt(
	ctx context.Context, tenant *snapshot.Tenant, key string, m Moment,
) (*state.Segment, error) {
	version := m.Version
	if version == 0 {
		err := q.db.QueryRow(ctx, `select version from read.audit where tenant_id = $1 and resource_id = $2
			and resource_type = 'segment' and recorded <= $3 order by n desc limit 1`, tenant.ID(), key, m.At).Scan(&version)
		if err != nil {
			return nil, classify(err)
		}
	}
	if live, ok := tenant.Segments().Find(key); ok && live.State().Version == version {
		return live.State(), nil
	}
	stream := events.SegmentStream(tenant.ID(), key)
	return q.segments.Get(ctx, segmentVersion{stream, version},
		otter.LoaderFunc[segmentVersion, *state.Segment](func(ctx context.Context, _ segmentVersion) (*state.Segment, error) {
			return q.foldSegment(ctx, stream, version)
		}))
}

// foldSegment folds a segment's stream up to a version.
func (q *Queries) foldSegment(ctx context.Context, stream string, version events.Revision) (*state.Segment, error) {
	s := &state.Segment{}
	for r, err := range q.store.Read(ctx, stream, 0) {
		if err == nil && r.Revision > version {
			break
		}
		if err == nil {
			err = r.Err
		}
		if errors.Is(err, events.ErrUnavailable) {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", stream, err)
		}
		s.Apply(r)
		if r.Revision == version {
			return s, nil
		}
	}
	return nil, ErrNotFound
}

// AddSegmentsAt adds the segments that some keys lead to, as they were at a time, to others of that time. Call
// WaitUntilCurrent for "segment." first.
func (q *Queries) AddSegmentsAt(
	ctx context.Context, tenant *snapshot.Tenant, to *evaluation.Segments, keys []string, at time.Time,
) (*evaluation.Segments, error) {
	seen := map[string]bool{}
	var added []*evaluation.Segment
	for next := keys; len(next) > 0; {
		key := next[0]
		next = next[1:]
		if _, known := to.Last(key); known || seen[key] {
			continue
		}
		seen[key] = true
		segment, err := q.compiledSegmentAt(ctx, tenant, key, at)
		if errors.Is(err, ErrNotFound) {
			continue // it never was
		}
		if err != nil {
			return nil, err
		}
		added = append(added, segment)
		for _, use := range segment.State().Uses {
			next = append(next[:len(next):len(next)], use.Key)
		}
	}
	return to.With(added...), nil
}

// compiledSegmentAt returns the live segment if it has not changed since, or else one folded from its facts.
func (q *Queries) compiledSegmentAt(
	ctx context.Context, tenant *snapshot.Tenant, key string, at time.Time,
) (*evaluation.Segment, error) {
	if live, ok := tenant.Segments().Last(key); ok && !live.State().UpdatedAt.After(at) && !live.State().SaltMissing {
		return live, nil
	}
	then, err := q.SegmentStateAt(ctx, tenant, key, Moment{At: at})
	if err != nil {
		return nil, err
	}
	if then, err = q.WithSalt(ctx, then); err != nil {
		return nil, err
	}
	compiled, _ := evaluation.CompileSegment(then, nil) // without the rules that this release does not know
	return compiled, nil
}

// segmentAt is a segment of a list, with its version then.
type segmentAt struct {
	Key     string
	Version events.Revision
}

// SegmentsListAt lists the segments that a tenant had at a time, by key. Call WaitUntilCurrent for "segment." first.
func (q *Queries) SegmentsListAt(
	ctx context.Context, tenant *snapshot.Tenant, at time.Time,
) (list []*state.Segment, err error) {
	rows, err := q.db.Query(ctx, `select key, version from (select distinct on (resource_id) resource_id as key, version,
			action from read.audit where tenant_id = $1 and resource_type = 'segment' and recorded <= $2
			order by resource_id, n desc) last where action <> 'segment.deleted' order by key`, tenant.ID(), at)
	if err != nil {
		return nil, classify(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[segmentAt])
	if err != nil {
		return nil, classify(err)
	}
	for _, f := range found {
		s, err := q.SegmentStateAt(ctx, tenant, f.Key, Moment{Version: f.Version})
		if err != nil {
			return nil, err
		}
		if s.Exists { // it was not forgotten after it was deleted
			list = append(list, s)
		}
	}
	return list, nil
}

// WithSalt returns a segment with the salt of its lists, if it is private and they were not forgotten.
func (q *Queries) WithSalt(ctx context.Context, s *state.Segment) (*state.Segment, error) {
	if !s.Private || s.Salt != nil {
		return s, nil
	}
	salt, err := q.salt(ctx, s.SaltID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	salted := s.Clone()
	salted.Salt, salted.SaltMissing = salt, false
	return &salted, nil
}
