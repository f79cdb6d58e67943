package projections

import (
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

const progressChannel = "flagledger_projections"

// Progress knows how far the read models are, whichever node carries them on, and the snapshot of this node, so that a
// command can be answered once those that it concerns show it.
type Progress struct {
	Patience time.Duration // the longest that Wait waits; it is set before the first wait

	mu       sync.Mutex
	models   map[string]*model
	logID    string          // of the log that the snapshot holds; empty until it has an event
	snapshot events.Position // up to where the snapshot holds the log
	changed  chan struct{}   // closed and replaced when something moves
}

// model is what Progress knows of a read model.
type model struct {
	prefixes []string
	logID    string          // of the log that its checkpoint is of; empty where nothing tells
	reached  events.Position // its checkpoint, which stands still while nothing happens that it follows
	// since when this process has failed to carry it on; zero while it does not, or another has carried it on since
	failing time.Time
	last    events.Position // of the last event that it follows, among those that the snapshot holds
}

// NewProgress returns a Progress for the given read models and one snapshot, at the beginning of the log.
func NewProgress(list []Projection) *Progress {
	p := &Progress{Patience: waitTimeout, models: map[string]*model{}, changed: make(chan struct{})}
	for _, projection := range list {
		p.models[projection.Name] = &model{prefixes: projection.FactPrefixes}
	}
	return p
}

// SnapshotReached notes a page that the snapshot of this node holds. Pages come in order, from the beginning of the log
// or where the snapshot began.
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

// SnapshotBegan notes that the snapshot of this node begins at a checkpoint, with all that is before it. Nothing tells
// which read models follow that, so all count as if they followed the last event of it.
func (p *Progress) SnapshotBegan(c events.LogPosition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logID, p.snapshot = c.LogID, c.Position
	for _, m := range p.models {
		m.last = c.Position
	}
	p.wake()
}

// waitTimeout is the longest that a command waits until it can be read, where nothing else is set.
const waitTimeout = 2 * time.Second

// Wait returns true once all that show facts of the given names hold a position, and false when that takes longer than
// Patience or ctx ends before. A name may be the beginning of several, such as "flag.".
func (p *Progress) Wait(ctx context.Context, position events.Position, names []string) bool {
	ctx, cancel := context.WithTimeout(ctx, p.Patience)
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
	if p.snapshot.Compare(position) < 0 { // it follows all facts
		return false
	}
	for _, m := range p.models {
		reached := m.reached
		if m.logID != "" && m.logID != p.logID { // positions of another log say nothing of this one
			reached = events.Position{}
		}
		// A checkpoint before the position will do where nothing of the read model's has happened since.
		complete := reached.Compare(position) >= 0 || reached.Compare(m.last) >= 0
		if !complete && affected(m.prefixes, names) {
			return false
		}
	}
	return true
}

// affected tells whether one who follows facts by prefixes of their names shows any of the named ones.
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

// reached notes a position that a read model has come to. What comes late changes nothing.
func (p *Progress) reached(name, logID string, position events.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := p.models[name]; ok && (m.logID != logID || m.reached.Compare(position) < 0) {
		m.logID, m.reached, m.failing = logID, position, time.Time{}
		p.wake()
	}
}

// failed notes that this process could not carry on a read model, or that it could.
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

// Failing names the read models that this process has failed to carry on for a time at least, in order. One that
// another process has taken further is not among them.
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

// resumed notes a position that a read model was found at. It may be before the one that was known: a crash of Postgres
// takes back the last moments, which were not yet on disk.
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

// lost notes that nothing is known of the read models until they are found again.
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

// Listen keeps Progress current with the checkpoints that other processes move, until ctx ends; Run does so by itself.
// It ignores checkpoints of another log than the store's.
func (p *Progress) Listen(ctx context.Context, url string, store events.Store, log *slog.Logger) {
	s := &session{
		url: url, log: log, claims: map[*claim]struct{}{},
		listen:   func(ctx context.Context, conn *pgx.Conn) error { return p.subscribe(ctx, conn, store) },
		notified: p.notified,
		broken:   p.lost,
	}
	s.run(ctx)
}

// subscribe makes a connection hear of progress, and reads how far all are in the log of a store.
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

// notified takes in what formatProgress wrote. An earlier release leaves out the log's id.
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
