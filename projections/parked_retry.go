package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

var (
	// ErrNotParked reports that a read model has not parked a stream.
	ErrNotParked = errors.New("the stream is not parked")
	// ErrOrdered reports that a read model applies events in log order only, so a parked stream needs a rebuild.
	ErrOrdered = errors.New("the read model needs all events in order: rebuild it")
)

// retryBatch is the number of events of a parked stream that are applied at once.
const retryBatch = 500

// Retry applies the missed events of a parked stream, all or none, and follows the stream again. It returns
// ErrNotParked, ErrOrdered for an Ordered read model, or the first event that still fails.
//
// The live projector is stopped meanwhile.
func Retry(ctx context.Context, url string, store events.Store, p Projection, stream string) error {
	if p.Ordered {
		return ErrOrdered
	}
	w, err := openConnections(url, projectorName, 1)
	if err != nil {
		return err
	}
	defer w.pool.Close()
	return w.use(ctx, liveSchema, func(conn *pgx.Conn) error {
		if _, err := p.resume(ctx, conn, liveSchema, store); err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			reached, err := p.lockCheckpoint(ctx, tx)
			if err != nil {
				return err
			}
			var from events.Revision
			// The live projector notices the changed number of parked streams.
			err = tx.QueryRow(ctx, `delete from keep.parked where projection = $1 and not building and stream = $2
				returning revision`, p.Name, stream).
				Scan(&from)
			if errors.Is(err, pgx.ErrNoRows) {
				return ErrNotParked
			}
			if err != nil {
				return err
			}
			return p.applyStream(ctx, tx, store, stream, from, reached)
		})
	})
}

// lockCheckpoint stops the live projector until the transaction ends, and returns its position.
func (p Projection) lockCheckpoint(ctx context.Context, tx pgx.Tx) (reached events.Position, err error) {
	err = tx.QueryRow(ctx, `select commit, prepare from checkpoints where projection = $1 and version = $2 for update`, p.Name, p.Version).
		Scan(&reached.Commit, &reached.Prepare)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoReadModel
	}
	return reached, err
}

// applyStream applies the events of a stream from a revision up to a position.
func (p Projection) applyStream(
	ctx context.Context, tx pgx.Tx, store events.Store, stream string, from events.Revision, upTo events.Position,
) error {
	apply, load := p.Apply, func([]events.Recorded) error { return nil }
	if p.New != nil {
		model := p.New()
		apply = model.Apply
		load = func(list []events.Recorded) error {
			return model.Load(ctx, func(use func(*pgx.Conn) error) error { return use(tx.Conn()) }, list)
		}
	}
	flush := func(list []events.Recorded) error {
		if err := load(list); err != nil {
			return err
		}
		batch := &Batch{}
		for _, e := range list {
			if err := applyEvent(apply, batch, e); err != nil {
				return fmt.Errorf("version %d cannot be applied: %w", e.Revision, err)
			}
		}
		if err := batch.Run(ctx, tx); err != nil {
			return fmt.Errorf("versions %d to %d cannot be applied: %w", list[0].Revision, list[len(list)-1].Revision, err)
		}
		return nil
	}
	var list []events.Recorded
	for e, err := range store.Read(ctx, stream, from) {
		if err != nil {
			return err
		}
		if e.Position.Compare(upTo) > 0 {
			break
		}
		if !p.follows(e.Name) {
			continue
		}
		if list = append(list, e); len(list) == retryBatch {
			if err := flush(list); err != nil {
				return err
			}
			list = nil
		}
	}
	if len(list) == 0 {
		return nil
	}
	return flush(list)
}
