package queries

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Actor is the person or client that caused an event.
type Actor struct {
	ActorKind  string
	ActorID    string
	ActorName  string // empty if they have neither a name nor an address
	ActorKnown bool   // false for a person who is no longer in the directory
}

const (
	// Columns and joins of the Actor of a row a of read.audit. The collations are cast because the indexes of the
	// other tables are only used under their own.
	actorColumns = `a.actor_kind, a.actor_id, coalesce(c.name, nullif(p.display_name, ''), p.email, '') as actor_name,
		a.actor_kind <> 'user' or p.user_id is not null as actor_known`
	actorJoins = ` left join keep.people p on a.actor_kind = 'user' and p.user_id = a.actor_id collate "default"
		left join read.oauth_clients c on a.actor_kind = 'client' and c.id = a.actor_id collate "default"`
)

// HistoryEntry is one event of a flag.
type HistoryEntry struct {
	ID          string
	Action      string
	Changes     json.RawMessage
	Environment *string
	Version     int64
	Actor
	RequestID string
	Reason    string
	Timestamp time.Time // when the store recorded it
	// Dependency is whose event it is; its Type is empty for one of the flag itself.
	Dependency
}

// HistoryFilter narrows a history; empty fields match everything. From is inclusive, To exclusive.
type HistoryFilter struct {
	Action      string
	UserID      string
	Environment string
	From, To    time.Time
	// Dependencies adds the events of what a flag depended on at that time.
	Dependencies bool
}

const ofResource = ` where a.tenant_id = $1 and a.resource_id = $2 and a.resource_type = $3`

// History lists the events of all flags or segments, also deleted ones, that have had a key, newest first. The
// resource type is flag or segment. It returns ErrNotFound if there never was one.
func (q *Queries) History(
	ctx context.Context, tenantID, resourceType, key string, filter HistoryFilter, page Page,
) (*List[HistoryEntry], error) {
	from := `from read.audit a` + actorJoins + ofResource
	args := []any{tenantID, key, resourceType}
	if filter.Dependencies {
		spans, err := q.dependencies(ctx, tenantID, key)
		if err != nil {
			return nil, err
		}
		var in []any
		from, in = spans.entries()
		args = append(args, in...)
	}
	where := func(condition string, value any) {
		args = append(args, value)
		from += fmt.Sprintf(" and "+condition+" $%d", len(args))
	}
	if filter.Action != "" {
		if filter.Dependencies {
			where("split_part(a.action, '.', 2) =", filter.Action)
		} else {
			where("a.action =", resourceType+"."+filter.Action)
		}
	}
	if filter.UserID != "" {
		where("a.actor_id =", filter.UserID)
	}
	if filter.Environment != "" {
		where("a.environment =", filter.Environment)
	}
	if !filter.From.IsZero() {
		where("a.recorded >=", filter.From)
	}
	if !filter.To.IsZero() {
		where("a.recorded <", filter.To)
	}
	count := `select count(*) ` + from
	if filter == (HistoryFilter{}) { // versions have no gaps, and counting millions is slow
		count = `select coalesce((select a.version from read.audit a` + ofResource + ` order by a.n desc limit 1), 0)`
	}
	entries, err := countedList[HistoryEntry](
		ctx,
		q.db,
		`a.id::text, split_part(a.action, '.', 2) as action, a.changes, a.environment, a.version, `+actorColumns+`,
			a.request_id, a.reason, a.recorded as timestamp,
			case when a.resource_type <> $3 or a.resource_id <> $2 then a.resource_type else '' end as type, a.resource_id as key`,
		from,
		`a.n desc`,
		count,
		page,
		args...)
	if err != nil || entries.Total > 0 {
		return entries, err
	}
	var exists bool
	err = q.db.QueryRow(ctx, `select exists (select from read.audit a`+ofResource+`)`, tenantID, key, resourceType).Scan(&exists)
	if err == nil && !exists {
		err = ErrNotFound
	}
	return entries, classify(err)
}
