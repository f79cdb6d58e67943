package queries

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// HistoryEntry is one event of a flag.
type HistoryEntry struct {
	ID          string
	Action      string
	Changes     json.RawMessage
	Environment *string
	Version     int64
	ActorKind   string
	ActorID     string
	ActorName   string // empty where they have neither a name nor an address
	ActorKnown  bool   // false for a person whom the directory no longer knows
	RequestID   string
	Reason      string
	Timestamp   time.Time
}

// HistoryFilter narrows a history; fields that are empty do not. From is included, To is not.
type HistoryFilter struct {
	Action      string
	UserID      string
	Environment string
	From, To    time.Time
}

// History lists the events of all flags that have had a key, deleted ones too, the newest first. It returns ErrNotFound for a key that no flag ever had.
func (q *Queries) History(ctx context.Context, tenantID, key string, filter HistoryFilter, page Page) (*List[HistoryEntry], error) {
	from := `from read.history h left join keep.people p on h.actor_kind = 'user' and p.user_id = h.actor_id
		left join read.oauth_clients c on h.actor_kind = 'client' and c.id = h.actor_id where h.tenant_id = $1 and h.key = $2`
	args := []any{tenantID, key}
	where := func(condition string, value any) {
		args = append(args, value)
		from += fmt.Sprintf(" and "+condition+" $%d", len(args))
	}
	if filter.Action != "" {
		where("h.action =", filter.Action)
	}
	if filter.UserID != "" {
		where("h.actor_id =", filter.UserID)
	}
	if filter.Environment != "" {
		where("h.environment =", filter.Environment)
	}
	if !filter.From.IsZero() {
		where("h.at >=", filter.From)
	}
	if !filter.To.IsZero() {
		where("h.at <", filter.To)
	}
	entries, err := list[HistoryEntry](ctx, q.db,
		`h.id::text, h.action, h.changes, h.environment, h.version, h.actor_kind, h.actor_id, coalesce(c.name, nullif(p.display_name, ''), p.email, '') as actor_name,
			h.actor_kind <> 'user' or p.user_id is not null as actor_known, h.request_id, h.reason, h.at as timestamp`,
		from, `h.version desc`, page, args...)
	if err != nil || entries.Total > 0 {
		return entries, err
	}
	return entries, q.found(ctx, "read.history", tenantID, key)
}
