package projections

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
)

// Status is how a read model stands.
type Status struct {
	Name     string
	Version  int
	Built    bool // false while no tables of this version are read
	Position events.Position
	Lag      uint64        // events that it has not taken in yet
	Behind   time.Duration // since the first of them happened; 0 when it is current
	Parked   []Parked
}

// Parked is a stream that a read model has stopped following.
type Parked struct {
	Stream   string
	Revision events.Revision
	Error    string
	At       time.Time
}

// Statuses tells how all read models stand.
func Statuses(ctx context.Context, db *pgxpool.Pool, store events.Store) ([]Status, error) {
	var list []Status
	for _, p := range All() {
		s := Status{Name: p.Name, Version: p.version}
		c, err := p.readCheckpoint(ctx, db, liveSchema, store.Engine())
		if err != nil && !errors.Is(err, errNoReadModel) {
			return nil, err
		}
		s.Built = err == nil
		s.Position = c.position
		if !s.Built {
			s.Position = events.Position{}
		}
		if err := s.measure(ctx, store); err != nil {
			return nil, err
		}
		rows, err := db.Query(ctx, `select stream, revision, error, parked_at from keep.parked where projection = $1 and not building order by parked_at, stream`, p.Name)
		if err != nil {
			return nil, err
		}
		if s.Parked, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Parked]); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// measure finds out how far a position is behind the end of the log. Positions of the Postgres engine count events.
func (s *Status) measure(ctx context.Context, store events.Store) error {
	head, err := store.Head(ctx)
	if err != nil {
		return err
	}
	if head.Compare(s.Position) <= 0 {
		return nil
	}
	s.Lag = head.Commit - s.Position.Commit
	for page, err := range store.Subscribe(ctx, s.Position) {
		if err != nil {
			return err
		}
		if len(page.Events) > 0 {
			s.Behind = max(0, time.Since(page.Events[0].Time))
		}
		break
	}
	return nil
}
