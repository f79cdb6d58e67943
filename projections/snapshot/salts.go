package snapshot

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/retry"
)

// Salts reads the salts of private segments, which no fact holds.
type Salts interface {
	// Load returns a salt as it is stored, nil if there is none with the id.
	Load(ctx context.Context, id string) (encrypted []byte, err error)
	// Decrypt returns the salt of what Load returned, and false if another secret encrypted it.
	Decrypt(id string, encrypted []byte) (salt []byte, ok bool)
}

// saltTimeout limits how long the log waits for a salt. Until it is loaded, a segment's lists match nobody.
const saltTimeout = time.Second

// salts has the salts of the private segments in a snapshot.
type salts struct {
	source Salts // nil: there are none
	known  *xsync.Map[string, salt]
	failed atomic.Bool // a salt could not be loaded: loadSalts is trying again
	slow   atomic.Bool // loading a salt took too long: only loadSalts loads any
	retry  chan struct{}
}

// salt is a salt as it is used and as it is stored. Both are nil if it was forgotten.
type salt struct{ plain, encrypted []byte }

func newSalts(source Salts) salts {
	return salts{source: source, known: xsync.NewMap[string, salt](), retry: make(chan struct{}, 1)}
}

var errSaltSecret = errors.New("the salt is encrypted under a different FLAGLEDGER_SECRET")

// Salt returns the salt of a private segment, nil if it was forgotten.
func (s *Snapshot) Salt(ctx context.Context, id string) ([]byte, error) {
	known, err := s.salts.load(ctx, id)
	return known.plain, err
}

func (s *salts) load(ctx context.Context, id string) (loaded salt, err error) {
	known, ok := s.known.Load(id)
	if ok || s.source == nil {
		return known, nil
	}
	if loaded.encrypted, err = s.source.Load(ctx, id); err != nil || loaded.encrypted == nil {
		return loaded, err
	}
	if loaded.plain, ok = s.decrypt(id, loaded.encrypted); !ok {
		return loaded, errSaltSecret
	}
	return loaded, nil
}

func (s *salts) decrypt(id string, encrypted []byte) (plain []byte, ok bool) {
	if s.source == nil || encrypted == nil {
		return nil, false
	}
	return s.source.Decrypt(id, encrypted)
}

// forgetTenant forgets the salts of a tenant.
func (s *salts) forgetTenant(t *Tenant) {
	for _, segment := range t.Segments().All() {
		s.known.Delete(segment.State().SaltID)
	}
}

// ofSegment returns the salt of a segment that is in the snapshot, nil if it was forgotten. If it cannot be loaded, it
// is missing, and loadSalts tries again.
func (s *salts) ofSegment(id string) (plain []byte, missing bool) {
	if s.slow.Load() {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), saltTimeout)
	defer cancel()
	loaded, err := s.load(ctx, id)
	if err != nil {
		s.failed.Store(true)
		if errors.Is(err, context.DeadlineExceeded) {
			s.slow.Store(true)
		}
		select {
		case s.retry <- struct{}{}:
		default: // loadSalts tries already, or will
		}
		return nil, true
	}
	s.known.Store(id, loaded)
	return loaded.plain, false
}

// loadSalts loads the salts that the snapshot could not load in time.
func (s *Snapshot) loadSalts(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-s.salts.retry:
		case <-ctx.Done():
			return
		}
		_ = retry.Run(ctx, func(func()) error { return s.loadMissingSalts(ctx) }, func(err error, wait time.Duration) {
			log.Error("private segments match nobody by their lists: their salts cannot be loaded", "retry_in", wait, "err", err)
		})
	}
}

// loadMissingSalts loads all missing salts that it can. Its error is of the first that it cannot load.
func (s *Snapshot) loadMissingSalts(ctx context.Context) (firstErr error) {
	s.applying.Lock()
	s.salts.failed.Store(false)
	s.salts.slow.Store(false) // segments from now on load their salts themselves
	s.applying.Unlock()
	for _, t := range s.tenants.All() {
		for _, segment := range t.Segments().All() {
			id := segment.State().SaltID
			if _, known := s.salts.known.Load(id); known || !segment.State().Private || !segment.State().Exists {
				continue
			}
			loaded, err := s.salts.load(ctx, id)
			if err != nil {
				s.salts.failed.Store(true)
				firstErr = cmp.Or(firstErr, err)
				continue
			}
			s.applying.Lock()
			if now, ok := t.Segments().Last(segment.State().Key); ok && now.State().SaltID == id { // not forgotten meanwhile
				s.salts.known.Store(id, loaded)
				s.setSalt(t, segment.State().Key)
				s.announce(s.changes.take(s.Position()))
			}
			s.applying.Unlock()
		}
	}
	return firstErr
}

// addSalts shows a tenant's private segments with their salts. Those that the copy on disk lacks are loaded.
func (s *Snapshot) addSalts(t *Tenant) {
	for _, segment := range t.Segments().All() {
		if !segment.State().Private || !segment.State().Exists {
			continue
		}
		if _, known := s.salts.known.Load(segment.State().SaltID); !known && s.salts.source != nil {
			_, _ = s.salts.ofSegment(segment.State().SaltID)
		}
		s.setSalt(t, segment.State().Key)
	}
}

// setSalt shows a private segment with its salt, or that it is missing.
func (s *Snapshot) setSalt(t *Tenant, key string) {
	segment, ok := t.Segments().Last(key)
	if !ok {
		return
	}
	next := segment.State().Clone()
	known, loaded := s.salts.known.Load(next.SaltID)
	next.Salt, next.SaltMissing = known.plain, !loaded && s.salts.source != nil
	if next.Salt == nil && next.SaltMissing == segment.State().SaltMissing {
		return
	}
	_ = t.showSegment(&next) // reported when the rules came
	s.changes.add(t, Change{Position: s.Position(), Time: next.UpdatedAt, Dependents: t.segmentChange(key)})
}
