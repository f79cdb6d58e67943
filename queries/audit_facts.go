package queries

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// AuditFacts reads a tenant's events from the event store in log order, up to the last one when the reading began. It
// reads them in pieces and holds no connection between pieces.
type AuditFacts struct {
	LogID    string // identifies the log
	Total    int64
	q        *Queries
	tenantID string
	read     int64 // the number of facts read so far
}

// AuditFacts begins to read the facts of a tenant. It returns ErrUnavailable while the trail leaves out facts that
// cannot be applied.
func (q *Queries) AuditFacts(ctx context.Context, tenantID string) (*AuditFacts, error) {
	tree, err := q.CurrentAuditTree(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	log, err := q.store.Log(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return &AuditFacts{LogID: log.ID, q: q, tenantID: tenantID, Total: tree.Size}, nil
}

// Read returns how many facts were read so far.
func (f *AuditFacts) Read() int64 { return f.read }

// More reports whether there are further facts.
func (f *AuditFacts) More() bool { return f.read < f.Total }

// factsOfPiece limits the facts of one piece. A piece also ends at pieceBytes, but has at least one fact.
const factsOfPiece = 64

// auditedFact holds the place of a fact in the event store.
type auditedFact struct {
	ResourceType, ResourceID string
	Version                  events.Revision
}

// streamNames return the stream of a tenant's resource by kind of stream; nil for a kind of no tenant.
var streamNames = events.NewByStream(
	events.FlagStream,
	func(_, id string) string { return events.ProjectStream(id) },
	func(tenantID, _ string) string { return events.TenantStream(tenantID) },
	nil,
	nil,
	events.SegmentStream,
)

func (a auditedFact) stream(tenantID string) string {
	if name, _ := streamNames.Lookup(a.ResourceType + "-"); name != nil {
		return name(tenantID, a.ResourceID)
	}
	return events.TenantStream(tenantID) // of its environments, members, clients and subscription
}

// Next reads the next facts: at most `most`, and at most one piece. It returns none at the end.
func (f *AuditFacts) Next(ctx context.Context, most int64) ([]events.Recorded, error) {
	rows, err := f.q.db.Query(ctx,
		`select resource_type, resource_id, version from read.audit where tenant_id = $1 and n >= $2 and n < $3 order by n`,
		f.tenantID, f.read, min(f.read+min(most, factsOfPiece), f.Total))
	if err != nil {
		return nil, classify(err)
	}
	places, err := pgx.CollectRows(rows, pgx.RowToStructByName[auditedFact])
	if err != nil {
		return nil, classify(err)
	}
	held := map[string][]events.Recorded{} // by stream
	facts := make([]events.Recorded, 0, len(places))
	left := pieceBytes
	for _, place := range places {
		stream := place.stream(f.tenantID)
		list, known := held[stream]
		if len(list) == 0 && left <= 0 { // the next piece has the rest
			break
		}
		if !known {
			count := 0 // facts of one stream follow each other in the trail
			for _, other := range places {
				if other.stream(f.tenantID) == stream {
					count++
				}
			}
			if list, err = f.ofStream(ctx, stream, place.Version, count, &left); err != nil {
				return nil, err
			}
		}
		if len(list) == 0 || list[0].Revision != place.Version {
			return nil, fmt.Errorf("the store does not hold %s@%d, which is in the audit trail", stream, place.Version)
		}
		facts, held[stream] = append(facts, list[0]), list[1:]
	}
	f.read += int64(len(facts))
	return facts, nil
}

// ofStream reads up to this many facts of a stream, fewer if they use up the bytes left.
func (f *AuditFacts) ofStream(
	ctx context.Context, stream string, from events.Revision, count int, left *int,
) (list []events.Recorded, err error) {
	for e, err := range f.q.store.Read(ctx, stream, from) {
		if errors.Is(err, events.ErrUnavailable) {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", stream, err)
		}
		*left -= len(e.Stored.Data) + len(e.Stored.Metadata)
		if list = append(list, e); len(list) == count || *left <= 0 {
			break
		}
	}
	return list, nil
}
