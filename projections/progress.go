package projections

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

const progressChannel = "flagledger_projections"

// Progress knows how far the read models are, whichever node carries them on, and the snapshot of this node, so that a command can be
// answered once those that it concerns show it.
type Progress struct {
	mu        sync.Mutex
	positions map[string]events.Position // of the read models and the snapshot
	prefixes  map[string][]string        // of the names of facts that each of them follows
	changed   chan struct{}              // closed and replaced when a position moves
}

const snapshotName = "snapshot"

// NewProgress returns a Progress for the given read models and one snapshot, at the beginning of the log.
func NewProgress(list []Projection) *Progress {
	p := &Progress{
		positions: map[string]events.Position{snapshotName: {}},
		prefixes:  map[string][]string{snapshotName: {""}}, // it follows all facts
		changed:   make(chan struct{}),
	}
	for _, projection := range list {
		p.prefixes[projection.Name] = projection.FactPrefixes
		p.positions[projection.Name] = events.Position{}
	}
	return p
}

// SnapshotReached notes a position that the snapshot of this node holds.
func (p *Progress) SnapshotReached(position events.Position) { p.reached(snapshotName, position) }

// waitTimeout is the longest that a command waits until it can be read.
const waitTimeout = 2 * time.Second

// Wait returns true once all that show facts of the given names hold a position, and false when that takes over 2 s or ctx ends before. A name
// may be the beginning of several, such as "flag.".
func (p *Progress) Wait(ctx context.Context, position events.Position, names []string) bool {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
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
	for reader, reached := range p.positions {
		if reached.Compare(position) < 0 && affected(p.prefixes[reader], names) {
			return false
		}
	}
	return true
}

// affected tells whether one who follows facts by prefixes of their names shows any of the named ones.
func affected(prefixes, names []string) bool {
	for _, name := range names {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) || strings.HasPrefix(prefix, name) }) {
			return true
		}
	}
	return false
}

// reached notes a position. Positions only grow: a read model that is rebuilt is switched to when it is as far as the old one.
func (p *Progress) reached(name string, position events.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, waitedFor := p.positions[name]; waitedFor && before.Compare(position) < 0 {
		p.positions[name] = position
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

func formatProgress(projection string, position events.Position) string {
	return fmt.Sprintf("%s %d %d", projection, position.Commit, position.Prepare)
}

// Listen keeps Progress current with what other nodes carry on, until ctx ends. Checkpoints of another engine than the named one say nothing.
func (p *Progress) Listen(ctx context.Context, url, engine string, log *slog.Logger) {
	wait := retryWait
	for ctx.Err() == nil {
		if err := p.listen(ctx, url, engine, func() { wait = retryWait }); err != nil && ctx.Err() == nil {
			log.Warn("listening for the progress of projections; it tries again", "in", wait, "err", err)
			_ = pause(ctx, wait)
			wait = min(2*wait, maxRetryWait)
		}
	}
}

func (p *Progress) listen(ctx context.Context, url, engine string, listening func()) error {
	conn, err := connect(ctx, url, liveSchema)
	if err != nil {
		return err
	}
	defer disconnect(conn)
	if _, err := conn.Exec(ctx, "listen "+progressChannel); err != nil {
		return err
	}
	if err := createSchema(ctx, conn, liveSchema); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, `select projection, commit, prepare from checkpoints where engine = $1`, engine)
	if err != nil {
		return err
	}
	var name string
	var position events.Position
	_, err = pgx.ForEachRow(rows, []any{&name, &position.Commit, &position.Prepare}, func() error {
		p.reached(name, position)
		return nil
	})
	if err != nil {
		return err
	}
	listening()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscanf(n.Payload, "%s %d %d", &name, &position.Commit, &position.Prepare); err == nil {
			p.reached(name, position)
		}
	}
}
