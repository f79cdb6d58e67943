package projections

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// waitTimeout is the default timeout of Progress.
const waitTimeout = 2 * time.Second

const progressChannel = "flagledger_projections"

// Progress tracks the positions of the shared read models and of this node's snapshot. Commands wait on it before they
// respond, so that clients read their own writes.
type Progress struct {
	timeout time.Duration

	mu       sync.Mutex
	models   map[string]*model
	logID    string          // of the log in the snapshot; empty before its first event
	snapshot events.Position // the snapshot's position in the log
	changed  chan struct{}   // closed and replaced when something moves
}

// model is the known progress of a read model.
type model struct {
	prefixes []string
	logID    string          // of its checkpoint; empty if unknown
	reached  events.Position // its checkpoint; only events that it follows move it
	// failing is the time of the first failed update in this process. A later update by any process clears it.
	failing time.Time
	last    events.Position // the last event in the snapshot that it follows
}

// NewProgress returns a Progress that starts at the beginning of the log. timeout limits Wait, two seconds if 0.
func NewProgress(list []Projection, timeout time.Duration) *Progress {
	p := &Progress{timeout: cmp.Or(timeout, waitTimeout), models: map[string]*model{}, changed: make(chan struct{})}
	for _, projection := range list {
		p.models[projection.Name] = &model{prefixes: projection.FactPrefixes}
	}
	return p
}

// SnapshotReached records a page in this node's snapshot. Pages come in order, from the beginning of the log or the
// snapshot's start.
func (p *Progress) SnapshotReached(page events.Page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.logID == "" && len(page.Events) > 0 {
		p.logID = events.LogID(page.Events[0])
	}
	for _, e := range page.Events {
		for _, m := range p.models {
			if followed(m.prefixes, e.Name) {
				m.last = e.Position
			}
		}
	}
	p.snapshot = page.Next
	p.wake()
}

// SnapshotBegan records that the snapshot starts at a checkpoint. Which models follow the events before it is unknown,
// so every model must reach it.
func (p *Progress) SnapshotBegan(c events.LogPosition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logID, p.snapshot = c.LogID, c.Position
	for _, m := range p.models {
		m.last = c.Position
	}
	p.wake()
}

// Wait waits until the snapshot and all read models that follow one of names have reached a position. It returns false
// on timeout or if ctx ends. A name may be a prefix, such as "flag.".
func (p *Progress) Wait(ctx context.Context, position events.Position, names []string) bool {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	for {
		p.mu.Lock()
		held, changed := p.held(position, names), p.changed
		p.mu.Unlock()
		if held {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (p *Progress) held(position events.Position, names []string) bool {
	if p.snapshot.Compare(position) < 0 { // the snapshot follows all facts
		return false
	}
	for _, m := range p.models {
		reached := m.reached
		if m.logID != "" && m.logID != p.logID { // positions of a different log cannot be compared
			reached = events.Position{}
		}
		// A checkpoint before the position is enough if the read model has no events after it.
		complete := reached.Compare(position) >= 0 || reached.Compare(m.last) >= 0
		if !complete && affected(m.prefixes, names) {
			return false
		}
	}
	return true
}

// affected reports whether prefixes of fact names match any of the names.
func affected(prefixes, names []string) bool {
	for _, name := range names {
		if slices.ContainsFunc(
			prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) || strings.HasPrefix(prefix, name) },
		) {
			return true
		}
	}
	return false
}

// reached records a read model's position. An earlier position changes nothing.
func (p *Progress) reached(name, logID string, position events.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := p.models[name]; ok && (m.logID != logID || m.reached.Compare(position) < 0) {
		m.logID, m.reached, m.failing = logID, position, time.Time{}
		p.wake()
	}
}

// failed records whether this process failed to update a read model.
func (p *Progress) failed(name string, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.models[name]
	switch {
	case !ok:
	case !failed:
		m.failing = time.Time{}
	case m.failing.IsZero():
		m.failing = time.Now()
	}
}

// Failing returns the sorted names of the read models that have failed in this process for at least atLeast.
func (p *Progress) Failing(atLeast time.Duration) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, m := range p.models {
		if !m.failing.IsZero() && time.Since(m.failing) >= atLeast {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// resumed sets the position that was read from the database. It may be lower than before: a crash of Postgres can lose
// the last commits.
func (p *Progress) resumed(name, logID string, position events.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := p.models[name]; ok {
		if m.logID != logID || m.reached.Compare(position) < 0 {
			m.failing = time.Time{}
		}
		m.logID, m.reached = logID, position
		p.wake()
	}
}

// lost resets all positions until subscribe reads them again.
func (p *Progress) lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.models {
		m.reached = events.Position{}
	}
}

func (p *Progress) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func formatProgress(projection, logID string, position events.Position) string {
	return fmt.Sprintf("%s %d %d %s", projection, position.Commit, position.Prepare, logID)
}

// Listen receives the checkpoints of other processes until ctx ends. A process that calls Run does not need it. It
// ignores checkpoints of a different log.
func (p *Progress) Listen(ctx context.Context, url string, store events.Store, log *slog.Logger) {
	s := &session{
		url: url, log: log, claims: map[*claim]struct{}{},
		listen:   func(ctx context.Context, conn *pgx.Conn) error { return p.subscribe(ctx, conn, store) },
		notified: p.notified,
		broken:   p.lost,
	}
	s.run(ctx)
}

// subscribe makes a connection receive progress, and reads all positions in the log of a store.
func (p *Progress) subscribe(ctx context.Context, conn *pgx.Conn, store events.Store) error {
	if _, err := conn.Exec(ctx, "listen "+progressChannel); err != nil {
		return err
	}
	if err := createSchema(ctx, conn, liveSchema); err != nil {
		return err
	}
	rows, err := conn.Query(ctx,
		`select projection, engine, log, commit, prepare, last_event from `+liveSchema+`.checkpoints`)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
		Projection string
		checkpointColumns
	}])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	log, err := store.Log(ctx)
	if err != nil {
		return err
	}
	for _, row := range found {
		c := row.checkpoint()
		held, err := log.Holds(ctx, store, c)
		if err != nil {
			return err
		}
		if !held {
			c = events.LogPosition{}
		}
		p.resumed(row.Projection, c.LogID, c.Position)
	}
	return nil
}

// notified handles the output of formatProgress. Earlier releases omit the log's id.
func (p *Progress) notified(payload string) {
	fields := append(strings.SplitN(payload, " ", 4), "")
	if len(fields) < 4 {
		return
	}
	var position events.Position
	var commitErr, prepareErr error
	position.Commit, commitErr = strconv.ParseUint(fields[1], 10, 64)
	position.Prepare, prepareErr = strconv.ParseUint(fields[2], 10, 64)
	if commitErr == nil && prepareErr == nil {
		p.reached(fields[0], fields[3], position)
	}
}
