package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

var (
	// ErrNotParked says that a read model has not parked a stream.
	ErrNotParked = errors.New("the stream is not parked")
	// ErrOrdered says that a read model takes in events in the order of the log alone.
	ErrOrdered = errors.New("the read model needs all events in order: rebuild it")
)

// retryBatch is how many events of a parked stream are applied at once.
const retryBatch = 500

// Retry has a read model take in what it has missed of a stream that it has parked, and follow it again. It does all of
// it or nothing: the error tells which event cannot be applied still. It is ErrNotParked where the stream is not
// parked, and ErrOrdered for a read model that is Ordered.
//
// The live projector stands still meanwhile.
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
			// The live projector finds out by the number of streams that are parked.
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

// lockCheckpoint stops the live projector until the transaction ends, and tells where it stands.
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
	batch := &Batch{}
	first := from // of the batch
	flush := func(last events.Revision) error {
		if batch.empty() {
			return nil
		}
		if err := batch.Run(ctx, tx); err != nil {
			return fmt.Errorf("versions %d to %d cannot be applied: %w", first, last, err)
		}
		batch, first = &Batch{}, last+1
		return nil
	}
	last := from
	for e, err := range store.Read(ctx, stream, from) {
		if err != nil {
			return err
		}
		if e.Position.Compare(upTo) > 0 {
			break
		}
		last = e.Revision
		if !p.follows(e.Name) {
			continue
		}
		if err := applyEvent(p.Apply, batch, e); err != nil {
			return fmt.Errorf("version %d cannot be applied: %w", e.Revision, err)
		}
		if e.Revision-first+1 >= retryBatch {
			if err := flush(e.Revision); err != nil {
				return err
			}
		}
	}
	return flush(last)
}
