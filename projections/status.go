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
	Lag      int           // events that it has not taken in yet, counted up to 10,000
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

// Statuses tells how read models stand.
func Statuses(ctx context.Context, db *pgxpool.Pool, projections []Projection, store events.Store) ([]Status, error) {
	var list []Status
	for _, p := range projections {
		s := Status{Name: p.Name, Version: p.Version}
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

// maxLag is where counting stops: a lag of so many events stands for as many or more.
const maxLag = 10_000

// measure finds out how far a position is behind the end of the log.
func (s *Status) measure(ctx context.Context, store events.Store) error {
	head, err := store.Head(ctx)
	if err != nil || head.Compare(s.Position) <= 0 {
		return err
	}
	for page, err := range store.Subscribe(ctx, s.Position) {
		if err != nil {
			return err
		}
		if s.Lag == 0 && len(page.Events) > 0 {
			s.Behind = max(0, time.Since(page.Events[0].Time))
		}
		s.Lag = min(s.Lag+len(page.Events), maxLag)
		if page.Live || s.Lag == maxLag {
			break
		}
	}
	return nil
}
