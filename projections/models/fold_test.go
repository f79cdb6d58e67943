package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// These properties compare the rows of a read model with a fold of random facts, now and at each recorded time. A
// rebuild cannot find such faults, because it makes the same rows.

// Each test makes its own generators: rapid reads the name of one without a lock, while a slice of it writes the name.

func foldTexts() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "plain", `größer "quoted" 'single' \`, "{1,2}"})
}

func foldValues() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{`9007199254740993`, `1.50`, `"<é>"`, `{"b":1,"a":[1e2,null]}`, `null`})
}

func foldEnvs() *rapid.Generator[events.EnvironmentRef] {
	return rapid.SampledFrom([]events.EnvironmentRef{{ID: "e1", Name: "one"}, {ID: "e2", Name: "two"}})
}

// foldTable is a database with the tables of one read model.
type foldTable struct {
	outer *testing.T
	*rapid.T
	tx  pgx.Tx
	now time.Time
}

// checkFold checks a property. Each case starts with empty tables.
func checkFold(t *testing.T, p projections.Projection, property func(*foldTable)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if _, err := conn.Exec(t.Context(), p.Schema+p.Indexes); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		property(&foldTable{t, r, tx, time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)})
	})
}

// record turns a fact into an event. Events of one append share a recorded time.
func (f *foldTable) record(stream string, revision events.Revision, fact events.Fact) events.Recorded {
	f.now = f.now.Add(time.Duration(rapid.IntRange(0, 2).Draw(f.T, "hours")) * time.Hour)
	return events.Recorded{
		Event: events.Event{Fact: fact}, Stream: stream, Revision: revision, At: f.now, Name: fact.StoredName(),
	}
}

// run applies events as one page, and may queue later ones.
func (f *foldTable) run(fill func(*projections.Batch) error) {
	f.Helper()
	b := &projections.Batch{}
	if err := fill(b); err != nil {
		f.Fatal(err)
	}
	if err := b.Run(f.outer.Context(), f.tx); err != nil {
		f.Fatal(err)
	}
}

// apply applies events in pages of random lengths, and calls then, if set, after each page.
func (f *foldTable) apply(apply func(*projections.Batch, events.Recorded) error, list []events.Recorded,
	then func(last events.Recorded),
) {
	f.Helper()
	for len(list) > 0 {
		n := rapid.IntRange(1, len(list)).Draw(f.T, "page")
		f.run(func(b *projections.Batch) error {
			for _, e := range list[:n] {
				if err := apply(b, e); err != nil {
					return err
				}
			}
			return nil
		})
		if then != nil {
			then(list[n-1])
		}
		list = list[n:]
	}
}

// foldRows reads rows by column names.
func foldRows[T any](f *foldTable, sql string, args ...any) []T {
	f.Helper()
	rows, err := f.tx.Query(f.outer.Context(), sql, args...)
	if err != nil {
		f.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		f.Fatal(err)
	}
	return list
}

// same fails the test unless the rows equal the fold.
func (f *foldTable) same(what string, want, got any) {
	f.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		f.Fatalf("%s (-fold +rows):\n%s", what, diff)
	}
}

// eachTime calls check with each recorded time and the index of the last event by then.
func eachTime(list []events.Recorded, check func(at time.Time, last int)) {
	for i, e := range list {
		if i+1 == len(list) || list[i+1].At.After(e.At) {
			check(e.At, i)
		}
	}
}

func maybeChange[T any](f *foldTable, field string, to *rapid.Generator[T]) *events.Change[T] {
	if !rapid.Bool().Draw(f.T, field+" changes") {
		return nil
	}
	return &events.Change[T]{To: to.Draw(f.T, field)}
}

// foldFlag is a flag as in lists.
type foldFlag struct {
	ID, Name, Type, DefaultValue, Description, ProjectID, Owner, Status string

	Tags, Enabled                []string
	Links                        []events.Link
	OffServes                    events.OffServes
	Permanent, ClientSide        bool
	Version, CreatedVersion      events.Revision
	CreatedAt, UpdatedAt, Listed time.Time
}

const foldFlagAt = `
select s.id, s.name, s.type, d.default_value::text as default_value, s.description,
	coalesce(s.project_id, '') as project_id, coalesce(s.owner, '') as owner, s.links, s.off_serves, s.status, s.tags, array(select environment_id from flag_environment_spans e where e.tenant_id = s.tenant_id
		and e.key = s.key and e.since <= t.at and e.until > t.at order by 1) as enabled,
	s.permanent, s.client_side, v.version, s.created_version, s.created_at, v.recorded as updated_at, t.at as listed
from unnest($1::timestamptz[]) t (at)
	join flag_spans s on s.since <= t.at and s.until > t.at
	left join flag_spans d on (d.tenant_id, d.key, d.version) = (s.tenant_id, s.key, s.default_version)
	cross join lateral (select * from flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key
		and v.recorded <= t.at order by recorded desc, version desc limit 1) v
where s.tenant_id = 't' and s.key = 'k' order by t.at`

func TestRowsOfFlagsEqualTheirFold(t *testing.T) {
	t.Parallel()
	checkFold(t, flags, func(f *foldTable) {
		var (
			flag    state.Flag
			list    []events.Recorded
			folded  []state.Flag
			created events.Revision
			lists   = map[time.Time]foldFlag{}
			times   []time.Time
		)
		first := events.Revision(rapid.IntRange(state.StoredStateInterval-20, state.StoredStateInterval).Draw(f.T, "first"))
		for i := range events.Revision(rapid.IntRange(1, 25).Draw(f.T, "facts")) {
			e := f.record(events.FlagStream("t", "k"), first+i, drawFlagFact(f, &flag, first+i))
			flag.Apply(e)
			if _, is := e.Fact.(events.FlagCreated); is {
				created = e.Revision
			}
			list, folded = append(list, e), append(folded, flag.Clone())
			lists[e.At] = foldFlag{
				ID: flag.ID, Name: flag.Name, Type: string(flag.Type), DefaultValue: string(flag.DefaultValue),
				Description: flag.Description, ProjectID: flag.ProjectID, Status: string(flag.Status), Tags: flag.Tags,
				Enabled: []string(flag.Enabled), Permanent: flag.Permanent, ClientSide: flag.ClientSide, Owner: flag.Owner, Links: flag.Links,
				OffServes: flag.OffServes,
				Version:   e.Revision, CreatedVersion: created,
				CreatedAt: flag.CreatedAt, UpdatedAt: e.At, Listed: e.At,
			}
			if !flag.Exists {
				delete(lists, e.At)
			}
		}
		model := newFlagModel()
		use := func(run func(*pgx.Conn) error) error { return run(f.tx.Conn()) }
		for rest := list; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(f.T, "page")
			if err := model.Load(f.outer.Context(), use, rest[:n]); err != nil {
				f.Fatal(err)
			}
			f.run(func(b *projections.Batch) error {
				for _, e := range rest[:n] {
					if err := model.Apply(b, e); err != nil {
						return err
					}
				}
				return nil
			})
			last := rest[n-1]
			read := newFlagModel() // as after a restart
			if err := read.Load(f.outer.Context(), use, []events.Recorded{{Stream: last.Stream, Revision: 2}}); err != nil {
				f.Fatal(err)
			}
			want := folded[last.Revision-first]
			if !want.Exists {
				want = state.Flag{}
			}
			f.same(fmt.Sprintf("the state of version %d in rows", last.Revision), &want, read.flags[last.Stream])
			if rest = rest[n:]; rapid.Bool().Draw(f.T, "restart") {
				model = read
			}
		}

		var want []foldFlag
		eachTime(list, func(at time.Time, _ int) {
			times = append(times, at)
			if flag, exists := lists[at]; exists {
				want = append(want, flag)
			}
		})
		f.same("flags at each time", want, foldRows[foldFlag](f, foldFlagAt, times))

		for _, row := range foldRows[struct {
			Version events.Revision
			State   json.RawMessage
		}](f, `select version, state from flag_states`) {
			var got state.Flag
			if err := json.Unmarshal(row.State, &got); err != nil {
				f.Fatal(err)
			}
			want := folded[row.Version-first]
			if !want.Exists {
				want = state.Flag{Version: row.Version}
			}
			f.same(fmt.Sprintf("the state of version %d", row.Version), want, got)
		}
	})
}

// drawFlagFact draws the next change of a flag.
func drawFlagFact(f *foldTable, flag *state.Flag, revision events.Revision) events.Fact {
	value := func() json.RawMessage { return json.RawMessage(foldValues().Draw(f.T, "value")) }
	variation := func(i int) events.Variation {
		return events.Variation{
			ID: fmt.Sprintf("v%d.%d", revision, i), Name: foldTexts().Draw(f.T, "name"), Value: value(),
			Description: foldTexts().Draw(f.T, "description"),
			Weight:      events.Weight(rapid.IntRange(0, 100_000).Draw(f.T, "weight")),
		}
	}
	tags := rapid.SliceOfN(foldTexts(), 0, 2)
	links := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) events.Link {
		return events.Link{Title: foldTexts().Draw(t, "title"), URL: foldTexts().Draw(t, "url")}
	}), 0, 2)
	offServes := rapid.SampledFrom([]events.OffServes{events.OffServesValue, events.OffServesCode})
	if !flag.Exists {
		created := events.FlagCreated{
			TenantID: "t", Key: "k", ID: fmt.Sprint("id ", revision), Name: foldTexts().Draw(f.T, "name"), Type: events.JSONFlag,
			DefaultValue: value(), Description: foldTexts().Draw(f.T, "description"), Tags: tags.Draw(f.T, "tags"),
			ProjectID: foldTexts().Draw(f.T, "project"), Permanent: rapid.Bool().Draw(f.T, "permanent"),
			ClientSide: rapid.Bool().Draw(f.T, "client side"),
			Owner:      foldTexts().Draw(f.T, "owner"), Links: links.Draw(f.T, "links"), OffServes: offServes.Draw(f.T, "off"),
			Salt: fmt.Sprint(revision),
		}
		for i := range rapid.IntRange(0, 3).Draw(f.T, "variations") {
			created.Variations = append(created.Variations, variation(i))
		}
		return created
	}
	environment := foldEnvs().Draw(f.T, "environment")
	prerequisites := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) events.Prerequisite {
		return events.Prerequisite{FlagKey: foldTexts().Draw(t, "key"), Serves: []events.ServedValue{{Value: value()}}}
	}), 0, 2)
	facts := map[string]func() events.Fact{
		"updated": func() events.Fact {
			u := events.FlagUpdated{
				Name: maybeChange(f, "name", foldTexts()), Description: maybeChange(f, "description", foldTexts()),
				Tags: maybeChange(f, "tags", tags), ProjectID: maybeChange(f, "project", foldTexts()),
				Permanent: maybeChange(f, "permanent", rapid.Bool()), ClientSide: maybeChange(f, "client side", rapid.Bool()),
				Owner: maybeChange(f, "owner", foldTexts()), Links: maybeChange(f, "links", links), OffServes: maybeChange(f, "off", offServes),
			}
			if rapid.Bool().Draw(f.T, "value changes") {
				u.DefaultValue = &events.Change[json.RawMessage]{To: value()}
			}
			return u
		},
		"status": func() events.Fact {
			return events.FlagStatusChanged{
				To: rapid.SampledFrom([]events.FlagStatus{events.ActiveFlag, events.InactiveFlag, events.ArchivedFlag}).
					Draw(f.T, "status"),
			}
		},
		"enabled":  func() events.Fact { return events.FlagEnabled{Environment: environment} },
		"disabled": func() events.Fact { return events.FlagDisabled{Environment: environment} },
		"added":    func() events.Fact { return events.VariationAdded{Variation: variation(0)} },
		"rules":    func() events.Fact { return drawRules(f, environment, flag.Rules[environment.ID], revision) },
		"fallthrough": func() events.Fact {
			if rapid.Bool().Draw(f.T, "none") {
				return events.FallthroughChanged{Environment: environment}
			}
			return events.FallthroughChanged{Environment: environment, To: &events.Serve{Value: value()}}
		},
		"prerequisites": func() events.Fact {
			return events.PrerequisitesChanged{
				Environment: environment, From: flag.PrerequisitesIn(environment.ID), To: prerequisites.Draw(f.T, "prerequisites"),
			}
		},
		"reverted": func() events.Fact {
			var ids []string
			for _, v := range flag.Variations {
				ids = append(ids, v.ID)
			}
			return events.FlagReverted{
				Version: 1, Variations: &events.Change[[]string]{To: rapid.Permutation(ids).Draw(f.T, "order")},
			}
		},
		"deleted": func() events.Fact { return events.FlagDeleted{} },
	}
	if len(flag.Variations) > 0 {
		v := rapid.SampledFrom(flag.Variations).Draw(f.T, "variation")
		facts["changed"] = func() events.Fact {
			return events.VariationUpdated{
				ID: v.ID, Name: maybeChange(f, "name", foldTexts()), Description: maybeChange(f, "description", foldTexts()),
				Weight: maybeChange(f, "weight", rapid.Just(events.Weight(500))),
				Value:  &events.Change[json.RawMessage]{To: value()},
			}
		}
		facts["removed"] = func() events.Fact { return events.VariationRemoved{Variation: v} }
	}
	// an order that changes needs several of a kind before
	kinds := append(slices.Sorted(maps.Keys(facts)), "rules", "rules", "added")
	return facts[rapid.SampledFrom(kinds).Draw(f.T, "fact")]()
}

// drawRules keeps, changes, moves, removes and adds rules.
func drawRules(f *foldTable, environment events.EnvironmentRef, before []events.Rule, revision events.Revision,
) events.Fact {
	var after []events.Rule
	for _, rule := range rapid.Permutation(before).Draw(f.T, "rules") {
		if rapid.Bool().Draw(f.T, "rule changes") {
			rule.Name = foldTexts().Draw(f.T, "name")
		}
		if rapid.IntRange(0, 3).Draw(f.T, "rule goes") > 0 {
			after = append(after, rule)
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(f.T, "new rules") {
		after = append(after, events.Rule{
			ID: fmt.Sprintf("r%d.%d", revision, i), Salt: "s", Serve: events.Serve{Value: json.RawMessage(`1.50`)},
			Conditions: []events.Condition{{Attribute: "plan", Op: events.Exists}},
		})
	}
	return events.ChangeRules(environment, before, after)
}

// foldProject is a project as in lists.
type foldProject struct {
	Project                      events.ProjectCreated
	CreatedAt, UpdatedAt, Listed time.Time
}

func TestRowsOfProjectsEqualTheirFold(t *testing.T) {
	t.Parallel()
	checkFold(t, projects, func(f *foldTable) {
		var (
			project state.Project
			list    []events.Recorded
			folded  []foldProject
			deleted bool
		)
		for i := range events.Revision(rapid.IntRange(1, 8).Draw(f.T, "facts")) {
			var fact events.Fact = events.ProjectUpdated{
				Name: maybeChange(f, "name", foldTexts()), Description: maybeChange(f, "description", foldTexts()),
				Color: maybeChange(f, "color", foldTexts()),
			}
			if i == 0 {
				fact = events.ProjectCreated{
					ID: "p", TenantID: "t", Name: foldTexts().Draw(f.T, "name"), Description: foldTexts().Draw(f.T, "description"),
				}
			} else if rapid.IntRange(0, 9).Draw(f.T, "deleted") == 0 {
				fact, deleted = events.ProjectDeleted{}, true
			}
			e := f.record(events.ProjectStream("p"), i+1, fact)
			project.Apply(e)
			list = append(list, e)
			folded = append(folded, foldProject{project.ProjectCreated, project.CreatedAt, project.UpdatedAt, e.At})
			if deleted {
				break
			}
		}
		f.apply(applyProject, list, nil)

		var want, now []foldProject
		var times []time.Time
		eachTime(list, func(at time.Time, last int) {
			times = append(times, at)
			if !deleted || last+1 < len(list) {
				want = append(want, folded[last])
			}
		})
		f.same("projects at each time", want, foldRows[foldProject](f, `
			select project, created_at, updated_at, at as listed from unnest($1::timestamptz[]) t (at)
				join project_spans s on s.since <= t.at and s.until > t.at order by at`, times))
		if !deleted {
			now = folded[len(folded)-1:]
		}
		f.same("projects now", now,
			foldRows[foldProject](f, `
				select project, created_at, updated_at, updated_at as listed from projects`))
	})
}

// foldPlace is an environment or a member as in lists.
type foldPlace struct {
	ID        string
	Name      string // a member's role, or an environment's name and color
	Pending   bool
	CreatedAt time.Time
}

// foldTenant holds what a tenant's lists show, in their order.
type foldTenant struct {
	environments, members []foldPlace
}

func (f *foldTenant) clone() foldTenant {
	return foldTenant{slices.Clone(f.environments), slices.Clone(f.members)}
}

// nameOf returns the name of an environment.
func nameOf(p foldPlace) string {
	name, _, _ := strings.Cut(p.Name, " ")
	return name
}

func removePlace(list []foldPlace, id string) []foldPlace {
	return slices.DeleteFunc(list, func(p foldPlace) bool { return p.ID == id })
}

func hasPlace(list []foldPlace, id string) bool {
	return slices.ContainsFunc(list, func(p foldPlace) bool { return p.ID == id })
}

func TestRowsOfTenantsEqualTheirFold(t *testing.T) {
	t.Parallel()
	roles := rapid.SampledFrom([]events.Role{events.AdminRole, events.DeveloperRole, events.ViewerRole})
	people := rapid.SampledFrom([]string{"u1", "u2", "u3"})
	checkFold(t, tenants, func(f *foldTable) {
		var (
			tenant foldTenant
			list   []events.Recorded
			folded []foldTenant
			joined = map[string]string{}
			name   = foldTexts().Draw(f.T, "name")
			over   *time.Time
		)
		add := func(fact events.Fact, change func(at time.Time)) {
			e := f.record(events.TenantStream("t"), events.Revision(len(list)+1), fact)
			if change != nil {
				change(e.At)
			}
			list, folded = append(list, e), append(folded, tenant.clone())
		}
		join := func(member foldPlace) func(at time.Time) {
			return func(at time.Time) {
				if !hasPlace(tenant.members, member.ID) {
					member.CreatedAt = at
					tenant.members = append(tenant.members, member)
				}
			}
		}
		add(events.TenantCreated{ID: "t", Name: name, Plan: events.FreePlan}, nil)
		for i := range rapid.IntRange(0, 20).Draw(f.T, "facts") {
			role, person := roles.Draw(f.T, "role"), people.Draw(f.T, "person")
			facts := map[string]func(){
				"environment added": func() {
					ref := events.EnvironmentRef{ID: fmt.Sprint("e", i), Name: fmt.Sprint(len(tenant.environments))}
					for slices.ContainsFunc(tenant.environments, func(p foldPlace) bool { return nameOf(p) == ref.Name }) {
						ref.Name += "x"
					}
					add(events.EnvironmentAdded{Environment: ref}, func(at time.Time) {
						tenant.environments = append(tenant.environments,
							foldPlace{ID: ref.ID, Name: ref.Name + " " + ref.DefaultColor(), CreatedAt: at})
					})
				},
				"invited": func() {
					id := fmt.Sprint("pending ", i)
					add(events.MemberInvited{ID: id, Role: role}, join(foldPlace{ID: id, Name: string(role), Pending: true}))
				},
				"added": func() {
					add(events.MemberAdded{UserID: person, Role: role}, join(foldPlace{ID: person, Name: string(role)}))
				},
				"renamed": func() {
					change := maybeChange(f, "name", foldTexts())
					add(events.TenantUpdated{Name: change}, nil)
					change.Apply(&name)
				},
				"deleted": func() {
					add(events.TenantDeleted{}, func(at time.Time) { tenant, over = foldTenant{}, &at })
				},
			}
			if len(tenant.environments) > 0 {
				gone := rapid.SampledFrom(tenant.environments).Draw(f.T, "environment")
				facts["environment deleted"] = func() {
					add(events.EnvironmentDeleted{Environment: events.EnvironmentRef{ID: gone.ID, Name: nameOf(gone)}},
						func(time.Time) { tenant.environments = removePlace(tenant.environments, gone.ID) })
				}
				order := rapid.Permutation(tenant.environments).Draw(f.T, "order")
				color := rapid.SampledFrom([]string{"#000000", "#ffffff"}).Draw(f.T, "color")
				facts["arranged"] = func() {
					var to []events.ArrangedEnvironment
					for i, p := range order {
						ref := events.EnvironmentRef{ID: p.ID, Name: nameOf(p)}
						to = append(to, events.ArrangedEnvironment{Environment: ref, Color: color})
						order[i].Name = ref.Name + " " + color
					}
					add(events.EnvironmentsArranged{To: to}, func(time.Time) { tenant.environments = order })
				}
			}
			if len(tenant.members) > 0 {
				member := rapid.SampledFrom(tenant.members).Draw(f.T, "member")
				facts["role changed"] = func() {
					add(events.MemberRoleChanged{UserID: member.ID, To: role}, func(time.Time) {
						i := slices.IndexFunc(tenant.members, func(p foldPlace) bool { return p.ID == member.ID })
						tenant.members[i].Name = string(role)
					})
				}
				facts["removed"] = func() {
					add(events.MemberRemoved{UserID: member.ID},
						func(time.Time) { tenant.members = removePlace(tenant.members, member.ID) })
				}
				if member.Pending {
					facts["joined"] = func() {
						add(events.MemberJoined{ID: member.ID, UserID: person, Role: role}, func(at time.Time) {
							tenant.members, joined[member.ID] = removePlace(tenant.members, member.ID), person
							join(foldPlace{ID: person, Name: string(role)})(at)
						})
					}
					facts["role changed, then joined"] = func() {
						facts["role changed"]()
						facts["joined"]()
					}
				}
			}
			facts[rapid.SampledFrom(slices.Sorted(maps.Keys(facts))).Draw(f.T, "fact")]()
			if over != nil {
				break
			}
		}
		f.apply(applyTenant, list, nil)

		const environments, members = `id, name || ' ' || color as name, false as pending`, `user_id as id, role as name, pending`
		f.same("environments now", tenant.environments,
			foldRows[foldPlace](f, `select `+environments+`, created_at from environments order by version, place`))
		f.same("members now", tenant.members,
			foldRows[foldPlace](f, `select `+members+`, created_at from members order by position`))
		eachTime(list, func(at time.Time, last int) {
			f.same("environments at a time", folded[last].environments, foldRows[foldPlace](f, `
				select `+environments+`, (select min(since) from environment_spans f where f.id = s.id) as created_at
					from environment_spans s where since <= $1 and until > $1 order by version, place`, at))
			f.same("members at a time", folded[last].members, foldRows[foldPlace](f, `
				select `+members+`, created_at from member_spans where since <= $1 and until > $1 order by position`, at))
		})
		for _, row := range foldRows[struct{ UserID, JoinedAs string }](f,
			`select user_id, coalesce(joined_as, '') as joined_as from member_spans`) {
			if row.JoinedAs != joined[row.UserID] {
				f.Errorf("a row of %s has joined as %q, not as %q", row.UserID, row.JoinedAs, joined[row.UserID])
			}
		}
		type row struct {
			Name      string
			DeletedAt *time.Time
		}
		f.same("the tenant", []row{{name, over}}, foldRows[row](f, `select name, deleted_at from tenants`))
	})
}

// foldEntry is an entry of the audit trail.
type foldEntry struct {
	TenantID     string
	N            int64
	Recorded     time.Time
	ResourceName string
}

// The clock of an engine may run back. The times of a tenant's entries do not, even if another process continues.
func TestEntryTimesNeverRunBack(t *testing.T) {
	t.Parallel()
	checkFold(t, audit, func(f *foldTable) {
		var list []events.Recorded
		var want []foldEntry
		revisions, names := map[string]events.Revision{}, map[string]string{}
		latest, sizes := map[string]time.Time{}, map[string]int64{}
		for i := range rapid.IntRange(1, 12).Draw(f.T, "facts") {
			tenant := rapid.SampledFrom([]string{"t", "u"}).Draw(f.T, "tenant")
			stream := events.ProjectStream(tenant + "'s")
			change := maybeChange(f, "name", foldTexts())
			var fact events.Fact = events.ProjectUpdated{Name: change}
			if revisions[stream]++; revisions[stream] == 1 {
				created := events.ProjectCreated{ID: tenant + "'s", TenantID: tenant, Name: foldTexts().Draw(f.T, "name")}
				fact, names[stream] = created, created.Name
			} else if change != nil {
				names[stream] = change.To
			}
			stored, err := events.Encode(events.Event{ID: uuid.New(), Fact: fact})
			if err != nil {
				f.Fatal(err)
			}
			e := f.record(stream, revisions[stream], fact)
			e.At = e.At.Add(-time.Duration(rapid.IntRange(0, 5).Draw(f.T, "hours back")) * time.Hour)
			e.Stored, e.ID, e.Position = stored, stored.ID, events.Position{Commit: uint64(i), Prepare: uint64(i)}
			list = append(list, e)
			if latest[tenant].Before(e.At) {
				latest[tenant] = e.At
			}
			want = append(want, foldEntry{tenant, sizes[tenant], latest[tenant], names[stream]})
			sizes[tenant]++
		}
		trail := newTrail()
		use := func(read func(*pgx.Conn) error) error { return read(f.tx.Conn()) }
		for len(list) > 0 {
			n := rapid.IntRange(1, len(list)).Draw(f.T, "page")
			if rapid.Bool().Draw(f.T, "another process") {
				trail = newTrail()
			}
			if err := trail.Load(f.outer.Context(), use, list[:n]); err != nil {
				f.Fatal(err)
			}
			f.run(func(b *projections.Batch) error {
				for _, e := range list[:n] {
					if err := trail.Apply(b, e); err != nil {
						return err
					}
				}
				return nil
			})
			list = list[n:]
		}
		f.same("entries", want, foldRows[foldEntry](f,
			`select tenant_id, n, recorded, resource_name from audit order by commit`))
	})
}
