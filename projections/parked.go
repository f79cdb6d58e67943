package projections

import (
	"context"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// park records that a stream is no longer followed from an event on, and moves the checkpoint past the event.
func (s *subscriber) park(ctx context.Context, e events.Recorded, p *cursor, cause error) error {
	batch := &Batch{}
	next := p.After([]events.Recorded{e}, e.Position)
	s.moveCheckpoint(batch, next, p)
	batch.exec(
		`insert into keep.parked (projection, building, stream, revision, commit, prepare, error)
			values ($1, $2, $3, $4, $5, $6, $7)`,
		s.projection.Name,
		s.schema == buildingSchema,
		e.Stream,
		e.Revision,
		e.Position.Commit,
		e.Position.Prepare,
		cause.Error(),
	)
	if err := s.flush(ctx, batch, next, p); err != nil {
		return err
	}
	s.log.Error("a stream is parked: the read model does not follow it until it is retried or rebuilt",
		"projection", s.projection.Name, "stream", e.Stream, "revision", e.Revision, "event", e.Name, "err", cause)
	return nil
}

// parked returns the streams that a projection has parked.
func (p Projection) parked(ctx context.Context, conn *pgx.Conn, schema string) (map[string]bool, error) {
	rows, err := conn.Query(ctx, `select stream from keep.parked where projection = $1 and building = $2`, p.Name,
		schema == buildingSchema)
	if err != nil {
		return nil, err
	}
	streams, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	parked := map[string]bool{}
	for _, stream := range streams {
		parked[stream] = true
	}
	return parked, nil
}
