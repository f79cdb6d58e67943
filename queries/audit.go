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
	ResourceName  string // then, or today's where it is a person's; empty where there is none
	ResourceKnown bool   // false for a person who has been erased, or a pending member whose address is forgotten
	// ResourceWithdrawn is true for a pending member whose invitation was withdrawn.
	ResourceWithdrawn bool
	Environment       *string
	Changes           json.RawMessage
	Actor
	Reason    string
	RequestID string
	Version   int64 // the number of the fact in its stream
}

// AuditFilter narrows an audit trail. Fields that are empty do not. From is included, To is not.
type AuditFilter struct {
	Action       string
	UserID       string // of whoever did it, or the id of a client
	ResourceType string
	ResourceID   string
	Environment  string // its name then
	From, To     time.Time
	// part of the resource's id or name as the entry shows it, of the reason or of UserID, in either case
	Search string
}

// AuditCursor is a place in an audit trail: that of an entry. For a tenant's it has one number, for the platform's two.
type AuditCursor []int64

// maxExamined is how many rows are looked at for one page, or for one piece of an export, where no index finds them: so
// many take a few milliseconds.
const maxExamined = 3000

const (
	// memberOfEntry finds the member that an entry of read.audit a is about. The columns of a have another collation than
	// those that they meet, whose indexes are used under their own alone.
	memberOfEntry = ` from read.member_spans m where a.resource_type = 'member'
		and m.tenant_id = a.tenant_id collate "default" and m.user_id = a.resource_id collate "default" limit 1`
	// personOfEntry is the person that an entry is about: of a pending member, who they have become.
	personOfEntry = `coalesce((select m.joined_as` + memberOfEntry + `), a.resource_id collate "default")`
	// nameOfEntry is the name that an entry shows, null where there is none. People's are today's.
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

// Audit reads a page of a tenant's trail, newest first, from the entries before a cursor, or the newest. next is where
// the next page begins, nil at the end. A page may have fewer entries than the limit, or none, before the end: no more
// than maxExamined rows are looked at.
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

// PlatformAudit is Audit for the facts of all tenants and of the platform, in the order of the log.
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

// auditEntries begins to read the entries that a condition finds. total is their number.
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

// auditRange is the numbers of the entries of a tenant that were recorded in the time of a filter: from first on and
// before end.
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

// auditNumber is the number of the first entry of a tenant that was recorded at a time or later, end where there is
// none. Times are in the order of numbers; one of 256 stands in an index by time.
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

// auditScan looks for entries of the trail, read.audit a.
type auditScan struct {
	order   string      // of its columns
	scope   []condition // that an index answers in that order
	filters []condition // that each of the rows must meet beside those: they are asked in this order
}

// condition is an SQL condition with %s for its one value.
type condition struct {
	format  string
	value   any
	indexed bool // in the trail of a tenant
}

// where joins conditions, whose parameters come after those that there are.
func where(args []any, list ...condition) (string, []any) {
	text := "true"
	for _, c := range list {
		args = append(args, c.value)
		text += " and " + strings.ReplaceAll(c.format, "%s", fmt.Sprintf("$%d", len(args)))
	}
	return text, args
}

// tenantScan scans the trail of a tenant. The time of the filter is left to the caller.
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

// conditions are those of a filter but for its time. Of those that are indexed, the one that fewest rows meet comes
// first.
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
		// as the index has it
		add(f.Action, "a.action = %s and a.action <> 'flag.enabled' and a.action <> 'flag.disabled'", true)
	}
	add(f.Environment, "a.environment = %s", true)
	if f.ResourceType == "flag" {
		add(f.ResourceType, "a.resource_type = %s", false)
	} else {
		add(f.ResourceType, "a.resource_type = %s and a.resource_type <> 'flag'", true) // as the index has it
	}
	// The text takes longest, so it comes last. Names of people are looked up only for rows about people.
	add(
		f.Search,
		`(strpos(lower(concat_ws(E'\n', a.resource_id, a.resource_name, a.reason, a.actor_id)), (select lower(%s))) > 0
		or a.resource_name is null and strpos(lower(`+nameOfEntry+`), (select lower(%s))) > 0)`,
		false,
	)
	return list
}

// page finds the places of the entries of a page, the newest first, and where the next page begins.
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

// fewPerEntry is how many rows are looked at first, for each entry of a page, and then four times as many each time, up
// to maxExamined in all: where many rows meet the filters, a page takes a fraction of that.
const fewPerEntry = 4

// examine is page where so many rows are looked at.
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
		// last marks the row after which the next page begins. Where fewer rows are left, the trail ends.
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
	var last bool // of the rows that were looked at: the next page begins after it
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
