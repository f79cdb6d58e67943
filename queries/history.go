package queries

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Actor is who caused a fact.
type Actor struct {
	ActorKind  string
	ActorID    string
	ActorName  string // empty where they have neither a name nor an address
	ActorKnown bool   // false for a person whom the directory no longer knows
}

const (
	// Columns and joins for the Actor of a row of read.audit named a. Its columns have another collation than those that
	// they meet, whose indexes are used under their own alone.
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
}

// HistoryFilter narrows a history; fields that are empty do not. From is included, To is not.
type HistoryFilter struct {
	Action      string
	UserID      string
	Environment string
	From, To    time.Time
}

const ofFlag = ` where a.tenant_id = $1 and a.resource_id = $2 and a.resource_type = 'flag'`

// History lists the events of all flags that have had a key, deleted ones too, the newest first. It returns ErrNotFound
// for a key that no flag ever had.
func (q *Queries) History(
	ctx context.Context, tenantID, key string, filter HistoryFilter, page Page,
) (*List[HistoryEntry], error) {
	from := `from read.audit a` + actorJoins + ofFlag
	args := []any{tenantID, key}
	where := func(condition string, value any) {
		args = append(args, value)
		from += fmt.Sprintf(" and "+condition+" $%d", len(args))
	}
	if filter.Action != "" {
		where("a.action =", "flag."+filter.Action)
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
	if filter == (HistoryFilter{}) { // versions have no gaps, and a flag may have millions
		count = `select coalesce((select a.version from read.audit a` + ofFlag + ` order by a.n desc limit 1), 0)`
	}
	entries, err := countedList[HistoryEntry](
		ctx,
		q.db,
		`a.id::text, substr(a.action, 6) as action, a.changes, a.environment, a.version, `+actorColumns+`, a.request_id, a.reason, a.recorded as timestamp`,
		from,
		`a.n desc`,
		count,
		page,
		args...)
	if err != nil || entries.Total > 0 {
		return entries, err
	}
	var exists bool
	err = q.db.QueryRow(ctx, `select exists (select from read.audit a`+ofFlag+`)`, tenantID, key).Scan(&exists)
	if err == nil && !exists {
		err = ErrNotFound
	}
	return entries, classify(err)
}
