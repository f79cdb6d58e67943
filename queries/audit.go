package queries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// AuditEntry is one fact of the audit trail.
type AuditEntry struct {
	Position      int64   // among the facts of the tenant, from 0
	TenantID      *string // nil for a fact about the platform
	ID            string
	Timestamp     time.Time // when it was recorded
	Action        string    // the stored name of the fact
	ResourceType  string
	ResourceID    string
	ResourceName  string // at that time, but a person's current name; empty if there is none
	ResourceKnown bool   // false for a person who has been erased, or a pending member whose address is forgotten
	// ResourceWithdrawn reports whether the resource is a pending member whose invitation was withdrawn.
	ResourceWithdrawn bool
	Environment       *string
	Changes           json.RawMessage
	Actor
	Reason    string
	RequestID string
	Version   int64 // the number of the fact in its stream
}

// AuditFilter narrows an audit trail; empty fields match everything. From is inclusive, To exclusive.
type AuditFilter struct {
	Action       string
	UserID       string // the id of the actor, a person or a client
	ResourceType string
	ResourceID   string
	Environment  string // its name at that time
	From, To     time.Time
	// Search matches part of the resource's id or name as shown, of the reason or of UserID, ignoring case.
	Search string
}

// AuditCursor identifies an entry as a place in a trail: by one number in a tenant's trail, by two in the platform's.
type AuditCursor []int64

// maxExamined limits the rows read for one page, or one piece of an export, if no index finds them. It takes a few
// milliseconds.
const maxExamined = 3000

const (
	// memberOfEntry finds the member of an entry of read.audit a. The collations are cast because the indexes of the
	// other tables are only used under their own.
	memberOfEntry = ` from read.member_spans m where a.resource_type = 'member'
		and m.tenant_id = a.tenant_id collate "default" and m.user_id = a.resource_id collate "default" limit 1`
	// personOfEntry selects the person of an entry. For a pending member it is the person who joined.
	personOfEntry = `coalesce((select m.joined_as` + memberOfEntry + `), a.resource_id collate "default")`
	// nameOfEntry selects the name that an entry shows, or null. People have their current name.
	nameOfEntry = `coalesce(a.resource_name,
		case when a.resource_type in ('member', 'user') then (select coalesce(nullif(r.display_name, ''), r.email)
			from keep.people r where r.user_id = ` + personOfEntry + `) end,
		case when a.resource_type = 'member' then (select m.email from keep.pending_members m
			where m.id = a.resource_id collate "default") end,
		case when a.resource_type = 'invitation' then (select i.email from keep.invitations i
			where i.id = a.resource_id collate "default") end)`

	auditColumns = `a.n as position, nullif(a.tenant_id, '') as tenant_id, a.id::text, a.recorded as timestamp, a.action,
		a.resource_type, a.resource_id,
	coalesce(` + nameOfEntry + `, '') as resource_name,
	case when (select m.pending and m.joined_as is null` + memberOfEntry + `) then ` + nameOfEntry + ` is not null
		when a.resource_type in ('member', 'user') then (select u.erased from read.users u where u.id = ` + personOfEntry + `) is not true
		else true end as resource_known,
	coalesce((select ` + withdrawn + memberOfEntry + `), false) as resource_withdrawn,
	a.environment, a.changes, ` + actorColumns + `, a.reason, a.request_id, a.version`
)

// Audit reads a page of a tenant's trail, newest first, before a cursor or from the end. next is the cursor of the
// next page, nil at the end. A page may be short or empty before the end, because at most maxExamined rows are read.
func (q *Queries) Audit(
	ctx context.Context, tenantID string, filter AuditFilter, before AuditCursor, limit int,
) (page *List[AuditEntry], next AuditCursor, err error) {
	first, end, err := q.auditRange(ctx, tenantID, filter)
	if err != nil {
		return nil, nil, err
	}
	if before == nil || before[0] > end {
		before = AuditCursor{end}
	}
	s := tenantScan(tenantID, filter)
	s.scope = append(s.scope, condition{format: "a.n >= %s", value: first})
	numbers, next, err := s.page(ctx, q.db, before, limit)
	if err != nil {
		return nil, nil, err
	}
	list := make([]int64, len(numbers))
	for i, n := range numbers {
		list[i] = n[0]
	}
	page, err = q.auditEntries(ctx, len(numbers), "a.tenant_id = $1 and a.n = any($2)", "a.n desc", tenantID, list)
	return page, next, err
}

// PlatformAudit works like Audit for the platform and all tenants, in log order.
func (q *Queries) PlatformAudit(
	ctx context.Context, filter AuditFilter, before AuditCursor, limit int,
) (page *List[AuditEntry], next AuditCursor, err error) {
	if before == nil {
		err := q.db.QueryRow(ctx, `select array[commit, prepare + 1] from read.audit order by commit desc, prepare desc
			limit 1`).
			Scan(&before)
		if errors.Is(err, pgx.ErrNoRows) {
			before, err = AuditCursor{0, 0}, nil
		}
		if err != nil {
			return nil, nil, classify(err)
		}
	}
	s := &auditScan{order: "a.commit, a.prepare"}
	if !filter.From.IsZero() {
		s.filters = append(s.filters, condition{format: "a.recorded >= %s", value: filter.From})
	}
	if !filter.To.IsZero() {
		s.filters = append(s.filters, condition{format: "a.recorded < %s", value: filter.To})
	}
	s.filters = append(s.filters, filter.conditions()...)
	positions, next, err := s.page(ctx, q.db, before, limit)
	if err != nil {
		return nil, nil, err
	}
	commits, prepares := make([]int64, len(positions)), make([]int64, len(positions))
	for i, p := range positions {
		commits[i], prepares[i] = p[0], p[1]
	}
	page, err = q.auditEntries(ctx, len(positions),
		"(a.commit, a.prepare) in (select * from unnest($1::bigint[], $2::bigint[]))", "a.commit, a.prepare desc", commits,
		prepares)
	return page, next, err
}

// auditEntries begins to read the entries that match a condition. total is their number.
func (q *Queries) auditEntries(
	ctx context.Context, total int, which, order string, args ...any,
) (*List[AuditEntry], error) {
	l := newList[AuditEntry](q.db, auditColumns, `from read.audit a`+actorJoins+` where `+which, order, total, args)
	l.Total = total
	if total == 0 {
		return l, nil
	}
	var err error
	l.Rows, err = l.read(ctx, 0)
	return l, err
}

// auditRange returns the numbers [first, end) of a tenant's entries that were recorded in the time of a filter.
func (q *Queries) auditRange(ctx context.Context, tenantID string, filter AuditFilter) (first, end int64, err error) {
	err = q.db.QueryRow(ctx, `select coalesce((select n + 1 from read.audit where tenant_id = $1 order by n desc
		limit 1), 0)`, tenantID).
		Scan(&end)
	if err == nil && !filter.From.IsZero() {
		first, err = q.auditNumber(ctx, tenantID, filter.From, end)
	}
	if err == nil && !filter.To.IsZero() {
		end, err = q.auditNumber(ctx, tenantID, filter.To, end)
	}
	return first, end, classify(err)
}

// auditNumber returns the number of a tenant's first entry recorded at or after a time, or end if there is none. Times
// rise with numbers; every 256th entry is indexed by time.
func (q *Queries) auditNumber(ctx context.Context, tenantID string, at time.Time, end int64) (number int64, err error) {
	err = q.db.QueryRow(ctx, `
		with indexed as (
			select n from read.audit where tenant_id = $1 and n % 256 = 0 and recorded < $2 order by recorded desc, n desc
				limit 1
		)
		select coalesce(min(n), $3) from read.audit
		where tenant_id = $1 and recorded >= $2
			and n >= coalesce((select n from indexed), 0) and n <= coalesce((select n from indexed), 0) + 256`, tenantID, at, end).Scan(&number)
	return number, err
}

// auditScan searches the entries of the trail, read.audit a.
type auditScan struct {
	order   string      // of its columns
	scope   []condition // answered by an index in that order
	filters []condition // checked for each row of the scope, in this order
}

// condition holds an SQL condition with %s for its one value.
type condition struct {
	format  string
	value   any
	indexed bool // in the trail of a tenant
}

// where joins conditions; their parameters follow args.
func where(args []any, list ...condition) (string, []any) {
	text := "true"
	for _, c := range list {
		args = append(args, c.value)
		text += " and " + strings.ReplaceAll(c.format, "%s", fmt.Sprintf("$%d", len(args)))
	}
	return text, args
}

// tenantScan returns a scan of a tenant's trail. The caller handles the filter's times.
func tenantScan(tenantID string, filter AuditFilter) *auditScan {
	s := &auditScan{
		order:   "a.n",
		scope:   []condition{{format: "a.tenant_id = %s", value: tenantID}},
		filters: filter.conditions(),
	}
	if i := slices.IndexFunc(s.filters, func(c condition) bool { return c.indexed }); i >= 0 {
		s.scope = append(s.scope, s.filters[i])
		s.filters = slices.Delete(s.filters, i, i+1)
	}
	return s
}

// conditions returns the conditions of a filter except for its times. The most selective indexed one comes first.
func (f AuditFilter) conditions() (list []condition) {
	add := func(value, format string, indexed bool) {
		if value != "" {
			list = append(list, condition{format, value, indexed})
		}
	}
	add(f.ResourceID, "a.resource_id = %s", true)
	add(f.UserID, "a.actor_id = %s", true)
	switch f.Action {
	case "flag.enabled", "flag.disabled":
		add(f.Action, "a.action = %s", false)
	default:
		// The condition repeats the one of the index.
		add(f.Action, "a.action = %s and a.action <> 'flag.enabled' and a.action <> 'flag.disabled'", true)
	}
	add(f.Environment, "a.environment = %s", true)
	if f.ResourceType == "flag" {
		add(f.ResourceType, "a.resource_type = %s", false)
	} else {
		add(f.ResourceType, "a.resource_type = %s and a.resource_type <> 'flag'", true) // repeats the index's condition
	}
	// The text search is slowest, so it comes last. Names of people are looked up only for rows about people.
	add(
		f.Search,
		`(strpos(lower(concat_ws(E'\n', a.resource_id, a.resource_name, a.reason, a.actor_id)), (select lower(%s))) > 0
		or a.resource_name is null and strpos(lower(`+nameOfEntry+`), (select lower(%s))) > 0)`,
		false,
	)
	return list
}

// page returns the positions of a page's entries, newest first, and the cursor of the next page.
func (s *auditScan) page(
	ctx context.Context, db reader, before AuditCursor, limit int,
) (found []AuditCursor, next AuditCursor, err error) {
	left, next := maxExamined, before
	for most := fewPerEntry * limit; len(found) < limit && next != nil && left > 0; most *= 4 {
		most = min(most, left)
		more, place, err := s.examine(ctx, db, next, limit-len(found), most)
		if err != nil {
			return nil, nil, err
		}
		found, next, left = append(found, more...), place, left-most
	}
	return found, next, nil
}

// fewPerEntry sets how many rows are read first for each entry of a page. Each further read takes four times as many,
// up to maxExamined in all, so a page of frequent matches reads only a fraction of that.
const fewPerEntry = 4

// examine reads this many rows and returns the matches.
func (s *auditScan) examine(
	ctx context.Context, db reader, before AuditCursor, limit, most int,
) (found []AuditCursor, next AuditCursor, err error) {
	scope, args := where(nil, s.scope...)
	var places []string
	for _, number := range before {
		args = append(args, number)
		places = append(places, fmt.Sprintf("$%d", len(args)))
	}
	backwards := strings.ReplaceAll(s.order, ",", " desc,") + " desc"
	place := "array[" + s.order + "]"
	examined := "from read.audit a where " + scope + " and (" + s.order + ") < (" + strings.Join(places, ", ") +
		") order by " + backwards
	query := fmt.Sprintf("select %s, false %s limit %d", place, examined, limit+1)
	if len(s.filters) > 0 {
		var rest string
		rest, args = where(args, s.filters...)
		// last marks the row after which the next page begins. It is missing if the trail ends earlier.
		query = fmt.Sprintf(`with examined as materialized (select %s, (%s) as met %s limit %d)
			select %s, last from (
				(select a.*, false as last from examined a where met order by %s limit %d)
				union all (select a.*, true from examined a order by %s offset %d limit 1)) a`,
			s.order, rest, examined, most, place, backwards, limit+1, backwards, most-1)
	}
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, nil, classify(err)
	}
	var here AuditCursor
	var last bool // the last row that was read: the next page begins after it
	_, err = pgx.ForEachRow(rows, []any{&here, &last}, func() error {
		if last {
			next = here
		} else {
			found = append(found, here)
		}
		here = nil
		return nil
	})
	if len(found) > limit {
		found, next = found[:limit], found[limit-1]
	}
	return found, next, classify(err)
}
