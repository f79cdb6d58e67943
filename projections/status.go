package projections

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
)

// Status is the state of a read model.
type Status struct {
	Name     string
	Version  int
	Built    bool // false if this version of this log has no live tables
	Position events.Position
	Lag      int           // pending events, counted among the next 10,000 of the log
	Behind   time.Duration // the age of the first of them; 0 when it is current
	Parked   []Parked
}

// Parked is a stream that a read model has stopped following because an event could not be applied.
type Parked struct {
	Stream   string
	Revision events.Revision
	Error    string
	At       time.Time
}

// Reached returns a read model's position in its log; the zero Position if this version has no live tables.
func (p Projection) Reached(ctx context.Context, db *pgxpool.Pool) (events.Position, error) {
	c, err := p.readCheckpoint(ctx, db, liveSchema)
	if errors.Is(err, errNoReadModel) {
		err = nil
	}
	return c.Position, err
}

// Parked lists the streams that the read model has parked, oldest first.
func (p Projection) Parked(ctx context.Context, db *pgxpool.Pool) ([]Parked, error) {
	rows, err := db.Query(
		ctx,
		`select stream, revision, error, parked_at as at from keep.parked where projection = $1 and not building
			order by parked_at, stream`,
		p.Name,
	)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Parked])
}

// Statuses returns the status of each read model.
func Statuses(ctx context.Context, db *pgxpool.Pool, projections []Projection, store events.Store) ([]Status, error) {
	var list []Status
	var found []checkpoint
	for _, p := range projections {
		s := Status{Name: p.Name, Version: p.Version}
		c, err := p.readCheckpoint(ctx, db, liveSchema)
		if err != nil && !errors.Is(err, errNoReadModel) {
			return nil, err
		}
		s.Built = err == nil
		found = append(found, c)
		if s.Parked, err = p.Parked(ctx, db); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	log, err := store.Log(ctx)
	if err != nil {
		return nil, err
	}
	holds := map[events.LogPosition]bool{} // many read models share an event, which may be large
	for i, c := range found {
		s := &list[i]
		if !s.Built {
			continue
		}
		if _, known := holds[c.LogPosition]; !known {
			if holds[c.LogPosition], err = log.Holds(ctx, store, c.LogPosition); err != nil {
				return nil, err
			}
		}
		if s.Built = holds[c.LogPosition]; s.Built {
			s.Position = c.Position
		}
	}
	return list, measure(ctx, list, projections, store)
}

// maxLag limits the events counted after a checkpoint.
const maxLag = 10_000

// measure sets how far the read models are behind the end of the log. Checkpoints near each other share a
// subscription.
func measure(ctx context.Context, list []Status, projections []Projection, store events.Store) error {
	head, err := store.Head(ctx)
	if err != nil {
		return err
	}
	var behind []int
	for i, s := range list {
		if s.Position.Compare(head) < 0 {
			behind = append(behind, i)
		}
	}
	slices.SortFunc(behind, func(a, b int) int { return list[a].Position.Compare(list[b].Position) })
	for len(behind) > 0 {
		read, start := 0, list[behind[0]].Position
		for page, err := range store.Subscribe(ctx, start) {
			if err != nil {
				return err
			}
			for _, e := range page.Events {
				for _, i := range behind {
					if s := &list[i]; s.Position.Compare(e.Position) < 0 && projections[i].follows(e.Name) {
						if s.Lag++; s.Lag == 1 {
							s.Behind = max(0, time.Since(e.At))
						}
					}
				}
			}
			if read += len(page.Events); page.Live {
				return nil
			}
			if start = page.Next; read >= maxLag {
				break
			}
		}
		// Remove the checkpoints that the count has passed.
		behind = slices.DeleteFunc(behind, func(i int) bool { return list[i].Position.Compare(start) < 0 })
	}
	return nil
}

// Building returns the positions of running or interrupted rebuilds by read model.
func Building(ctx context.Context, db *pgxpool.Pool) (map[string]events.Position, error) {
	reached := map[string]events.Position{}
	// rows returns the error too.
	rows, _ := db.Query(ctx, `select projection, commit, prepare from `+buildingSchema+`.checkpoints`)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
		Projection string
		events.Position
	}])
	if missingTable(err) { // there was never a rebuild
		return reached, nil
	}
	for _, row := range found {
		reached[row.Projection] = row.Position
	}
	return reached, err
}
