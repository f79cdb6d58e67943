package queries

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/state"
)

// Flag is a row of a list of flags in one environment.
type Flag struct {
	ID           string
	Key          string
	Name         string
	Type         string
	Enabled      bool
	DefaultValue json.RawMessage
	Description  string
	Tags         []string
	ProjectID    *string
	Permanent    bool
	ClientSide   bool
	Owner        *string // nil while the owner is no member
	Links        []events.Link
	OffServes    events.OffServes
	Status       string
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
	FlagUse      // empty in historical lists
}

// State returns the flag as its facts add up, without what a list leaves out.
func (f Flag) State() state.Flag {
	s := state.Flag{
		FlagCreated: events.FlagCreated{
			ID: f.ID, Key: f.Key, Name: f.Name, Type: events.FlagType(f.Type), DefaultValue: f.DefaultValue,
			Description: f.Description, Tags: f.Tags, Permanent: f.Permanent, ClientSide: f.ClientSide, Links: f.Links,
			OffServes: f.OffServes,
		},
		Exists: true, Status: events.FlagStatus(f.Status), Version: events.Revision(f.Version),
		CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt,
	}
	if f.ProjectID != nil {
		s.ProjectID = *f.ProjectID
	}
	if f.Owner != nil {
		s.Owner = *f.Owner
	}
	return s
}

// FlagFilter narrows a list of flags. Fields that are empty do not.
type FlagFilter struct {
	ProjectID  string
	Type       string
	Status     string
	Owner      string // a person's id, also of one who is no member
	Enabled    *bool
	ClientSide *bool
	Tag        string
	Search     string // words, each part of the key, the name, the description or a tag, ignoring case
	// Lifecycles matches any of these. EvaluatedBefore matches also flags that were never evaluated. Both are for
	// current lists only.
	Lifecycles      []Lifecycle
	EvaluatedBefore time.Time
}

const (
	// flagEnabled needs the tenant in $1 and the environment's id in $2.
	flagEnabled = `exists (select from read.flag_environments e where e.tenant_id = f.tenant_id and e.key = f.key
		and e.environment_id = $2)`
	// enabledAt works like flagEnabled at the time $3.
	enabledAt = `exists (select from read.flag_environment_spans e where e.tenant_id = f.tenant_id and e.key = f.key
		and e.environment_id = $2 and e.since <= $3 and e.until > $3)`
	// flagsAt selects the flags at the time $3 with the columns that lists filter and sort by.
	flagsAt = `(select s.*, (select v.recorded from read.flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key
		and v.recorded <= $3
				order by v.recorded desc, v.version desc limit 1) as updated_at
		from read.flag_spans s where s.tenant_id = $1 and s.since <= $3 and s.until > $3)`
	// versionAt selects the last version v of the flag o.key up to the time $3, if any.
	versionAt = `(select version, recorded as updated_at from read.flag_versions where tenant_id = $1 and key = o.key
		and recorded <= $3 order by recorded desc, version desc limit 1)`
	// spanAt selects the listed columns of the flag o.key at the version v.
	spanAt = `(select * from read.flag_spans where tenant_id = $1 and key = o.key and version <= v.version
		order by version desc limit 1)`
	// currentOwner selects the owner of the flag f, if they are a member.
	currentOwner = `(select user_id from read.members where user_id = f.owner and tenant_id = f.tenant_id)`
	// ownerAt selects the owner of the flag s, if they were a member of the tenant $1 at the time $3.
	ownerAt = `(select user_id from read.member_spans where user_id = s.owner and tenant_id = $1 and since <= $3
			and until > $3)`
	// flagAtSQL selects all flagColumns of the flag o.key at the time $3, or nothing if there was none. It reads the
	// same number of rows however often the flag has changed.
	flagAtSQL = `(select s.id, s.key, s.name, s.type, s.description, s.tags, s.project_id, s.permanent,
		s.client_side, ` + ownerAt + ` as owner, s.links, s.off_serves, s.status,
		s.created_at, v.version, v.updated_at,
			(select default_value from read.flag_spans where tenant_id = $1 and key = o.key
				and version = s.default_version) as default_value,
			coalesce((select until > $3 from read.flag_environment_spans where tenant_id = $1 and key = o.key
				and environment_id = $2 and version <= v.version
				order by version desc limit 1), false) as enabled
		from ` + versionAt + ` v cross join lateral ` + spanAt + ` s where s.until > $3)`
)

// flagColumns returns the columns of rows f of read.flags. enabled is the SQL that says whether the flag is on.
func flagColumns(enabled string) string { return shownColumns(enabled, currentOwner) }

// shownColumns returns the columns of rows f. enabled and owner are SQL.
func shownColumns(enabled, owner string) string {
	return `f.id, f.key, f.name, f.type, ` + enabled + ` as enabled, f.default_value, f.description, f.tags,
		f.project_id, f.permanent, f.client_side, ` + owner + ` as owner, f.links, f.off_serves, f.status, f.version,
		f.created_at, f.updated_at, `
}

// nullUsageColumns replaces the usage columns in historical lists.
const nullUsageColumns = `null::timestamptz as last_evaluated, null::timestamptz as last_prefetched,
	null::timestamptz as last_required, null::timestamptz as varied_hour`

// FlagList asks for a page of a tenant's flags.
type FlagList struct {
	TenantID, EnvironmentID string

	At     time.Time // zero for now
	Filter FlagFilter
	Sort   FlagSort
	Page   Page
	Stale  Staleness // as of now
	// Changed is the position of the last known change of the tenant's flags. A list is cached until it changes.
	Changed events.Position
}

// FlagSort is the order of a list of flags; equal flags are sorted by key. The empty order is by key.
type FlagSort string

// A - before a sort reverses it.
const (
	ByKey       FlagSort = "key"
	ByCreatedAt FlagSort = "createdAt"
	ByUpdatedAt FlagSort = "updatedAt"
	// ByLastEvaluatedAt puts flags first that were never evaluated. It is for current lists only.
	ByLastEvaluatedAt FlagSort = "lastEvaluatedAt"
	bySince           FlagSort = "since"
)

// order returns the sort as SQL over rows f.
func (s FlagSort) order() string {
	name, descending := strings.CutPrefix(string(s), "-")
	direction := ""
	if descending {
		direction = " desc"
	}
	switch FlagSort(name) {
	case ByCreatedAt:
		return "f.created_at" + direction + ", f.key"
	case ByUpdatedAt:
		return "f.updated_at" + direction + ", f.key"
	case ByKey:
		return "f.key" + direction
	default: // usedFlagKeys sorts by usage
		return "f.key"
	}
}

// dependsOnUse reports whether the list is filtered or sorted by usage.
func (l FlagList) dependsOnUse() bool {
	return len(l.Filter.Lifecycles) > 0 || !l.Filter.EvaluatedBefore.IsZero() || l.Sort.byUse() != nil
}

// id returns the identity of the list within a tenant.
func (l FlagList) id() string {
	environment, enabled := "", ""
	if l.Filter.Enabled != nil {
		environment, enabled = l.EnvironmentID, strconv.FormatBool(*l.Filter.Enabled)
	}
	f, clientSide := l.Filter, ""
	if f.ClientSide != nil {
		clientSide = strconv.FormatBool(*f.ClientSide)
	}
	return fmt.Sprintf(
		"%q",
		[]string{
			l.At.UTC().String(),
			environment,
			enabled,
			clientSide,
			f.ProjectID,
			f.Type,
			f.Status,
			f.Owner,
			f.Tag,
			f.Search,
			fmt.Sprint(f.Lifecycles),
			f.EvaluatedBefore.UTC().String(),
			string(l.Sort),
		},
	)
}

// flagRows holds the tail of a query, from its "from" on, that yields the rows f of a list.
type flagRows struct {
	from, where string
	enabled     string // SQL: whether the flag of a row is on
	args        []any
}

func (l FlagList) rows() flagRows {
	r := flagRows{
		from:    `from read.flags f`,
		where:   `where f.tenant_id = $1 and $2 <> ''`,
		enabled: flagEnabled,
		args:    []any{l.TenantID, l.EnvironmentID},
	}
	if !l.At.IsZero() {
		r = flagRows{from: `from ` + flagsAt + ` f`, where: `where $2 <> ''`, enabled: enabledAt, args: append(r.args, l.At)}
	}
	where := func(condition string, value any) {
		r.args = append(r.args, value)
		r.where += " and " + fmt.Sprintf(condition, len(r.args))
	}
	if l.Filter.ProjectID != "" {
		where("f.project_id = $%d", l.Filter.ProjectID)
	}
	if l.Filter.Type != "" {
		where("f.type = $%d", l.Filter.Type)
	}
	if l.Filter.Status != "" {
		where("f.status = $%d", l.Filter.Status)
	}
	if l.Filter.Owner != "" {
		where("f.owner = $%d", l.Filter.Owner)
	}
	if l.Filter.ClientSide != nil {
		where("f.client_side = $%d", *l.Filter.ClientSide)
	}
	switch enabled := l.Filter.Enabled; {
	case enabled == nil:
	case *enabled:
		r.where += " and " + r.enabled
	default:
		r.where += " and not " + r.enabled
	}
	if l.Filter.Tag != "" {
		where("$%d = any(f.tags)", l.Filter.Tag)
	}
	for word := range strings.FieldsSeq(l.Filter.Search) {
		where(`(strpos(lower(f.key), lower($%[1]d)) > 0 or strpos(lower(f.name), lower($%[1]d)) > 0
			or strpos(lower(f.description), lower($%[1]d)) > 0
			or exists (select from unnest(f.tags) t where strpos(lower(t), lower($%[1]d)) > 0))`, word)
	}
	return r
}

// Flags reads a page of a tenant's flags.
func (q *Queries) Flags(ctx context.Context, l FlagList) (*List[Flag], error) {
	if !l.At.IsZero() {
		if err := q.WaitUntilCurrent(ctx, l.At, "flag."); err != nil {
			return nil, err
		}
	}
	r := l.rows()
	keys, err := q.flagKeys(ctx, l, r)
	if err != nil {
		return nil, err
	}
	if !l.At.IsZero() {
		from := `from unnest($4::text[]) with ordinality o (key, place) cross join lateral ` + flagAtSQL + ` f`
		columns := shownColumns("f.enabled", "f.owner") + nullUsageColumns
		return listByKeys[Flag](ctx, q.db, columns, from, "o.place", keys, l.Page, nil, l.TenantID, l.EnvironmentID, l.At,
			[]string{})
	}
	// A flag may have been evaluated since the keys were read.
	wanted := func(f Flag) bool { return l.Filter.takes(f.inputs(), l.Stale) }
	columns := flagColumns(r.enabled) + usedColumns
	r.from += joinUse
	r.args = append(r.args, []string{}) // the keys of each piece
	// The condition on the key repeats the join, but makes the planner use the rows' index.
	from := fmt.Sprintf(
		"%s join unnest($%[2]d::text[]) with ordinality o (key, place) on o.key = f.key %s and f.key = any($%[2]d::text[])",
		r.from, len(r.args), r.where,
	)
	return listByKeys[Flag](ctx, q.db, columns, from, "o.place", keys, l.Page, wanted, r.args...)
}

// cacheID returns the identity of a list in the cache. It is not cached if the read models lack known changes.
func (q *Queries) cacheID(ctx context.Context, l FlagList) (id cachedListID, cached bool) {
	id = cachedListID{tenantID: l.TenantID, list: l.id()}
	if !l.At.IsZero() && l.Stale.Now.Sub(l.At) > finalAfter {
		return id, true
	}
	id.changed = l.Changed
	return id, q.holds(ctx, l.Changed)
}

// cacheTime returns how long the keys of a list that took this long to read are cached, from the beginning of the call.
func (l FlagList) cacheTime(took time.Duration) time.Duration {
	if l.dependsOnUse() {
		return min(took+max(usageTTL, usageTTLFactor*took), keysTTL)
	}
	return keysTTL
}

// flagKeys returns the keys of a list, all its pages.
func (q *Queries) flagKeys(ctx context.Context, l FlagList, r flagRows) (keys []string, err error) {
	id, cached := q.cacheID(ctx, l)
	if cached {
		if keys, ok := q.lists.get(id, l.Stale.Now); ok {
			return keys, nil
		}
	}
	began := q.now()
	if l.dependsOnUse() {
		keys, err = q.usedFlagKeys(ctx, l, r)
	} else {
		keys, err = q.sortedFlagKeys(ctx, l, r)
	}
	if err == nil && cached {
		q.lists.put(id, keys, l.Stale.Now.Add(l.cacheTime(q.now().Sub(began))))
	}
	return keys, err
}

// sortedFlagKeys reads the keys of a list in its order.
func (q *Queries) sortedFlagKeys(ctx context.Context, l FlagList, r flagRows) ([]string, error) {
	rows, err := q.db.Query(ctx, "select f.key "+r.from+" "+r.where+" order by "+l.Sort.order(), r.args...)
	if err != nil {
		return nil, classify(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return keys, classify(err)
}

// Flag reads one flag with its variations, oldest first, at the same version. It returns ErrNotFound if the tenant has
// no flag with that key.
func (q *Queries) Flag(
	ctx context.Context, tenantID, environmentID, key string,
) (flag Flag, variations []events.Variation, err error) {
	whole := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, q.db, whole, func(tx pgx.Tx) error {
		if flag, err = one[Flag](
			ctx, tx,
			`select `+flagColumns(flagEnabled)+usedColumns+` from read.flags f`+joinUse+` where f.tenant_id = $1 and f.key = $3`,
			tenantID, environmentID, key,
		); err != nil {
			return err
		}
		found, err := flagVariations(ctx, tx, tenantID, key, Page{})
		if err != nil {
			return err
		}
		variations, err = found.All(ctx)
		return err
	})
	return flag, variations, classify(err)
}

// WasMember reports whether a person was a member of a tenant at a time.
func (q *Queries) WasMember(ctx context.Context, tenantID, userID string, at time.Time) (was bool, err error) {
	err = q.db.QueryRow(ctx, `select exists (select from read.member_spans where tenant_id = $1 and user_id = $2
		and since <= $3 and until > $3)`, tenantID, userID, at).Scan(&was)
	return was, classify(err)
}

func flagVariations(ctx context.Context, db reader, tenantID, key string, page Page) (*List[events.Variation], error) {
	return list[events.Variation](ctx, db, `id, name, value, description, weight`,
		`from read.flag_variations where tenant_id = $1 and key = $2`, `added, ordinal`, page, tenantID, key)
}

// Variations lists a flag's variations, oldest first. It returns ErrNotFound if the tenant has no flag with that key.
func (q *Queries) Variations(ctx context.Context, tenantID, key string, page Page) (*List[events.Variation], error) {
	variations, err := flagVariations(ctx, q.db, tenantID, key, page)
	if err != nil || variations.Total > 0 {
		return variations, err
	}
	return variations, q.found(ctx, "read.flags", tenantID, key)
}
