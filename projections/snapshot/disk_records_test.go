package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

// difference describes how two snapshots differ in content and evaluation.
func difference(a, b *Snapshot) string {
	return gocmp.Diff(plain(a), plain(b), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(header{}, "Written"),
		cmpopts.IgnoreFields(EvaluationKey{}, "tenant"),                                                     // compared as a tenant
		cmpopts.IgnoreFields(state.Flag{}, "ChangedAt"), cmpopts.IgnoreFields(state.Segment{}, "ChangedAt"), // is for the writer, and not written
		gocmp.Exporter(func(reflect.Type) bool { return true }))
}

type plainSnapshot struct {
	contents
	projects map[string]string   // the tenant of each project
	created  map[string][]string // tenants by creator
	served   []string
	keys     map[[sha256.Size]byte]*EvaluationKey
}

// plain returns a snapshot's content in a fixed order.
func plain(s *Snapshot) plainSnapshot {
	p := plainSnapshot{*s.copyContents(), map[string]string{}, map[string][]string{}, nil, maps.Collect(s.evaluationKeys.All())}
	for id, t := range s.projects {
		p.projects[id] = t.id
	}
	for creator, tenants := range s.created.by {
		for _, t := range tenants {
			p.created[creator] = append(p.created[creator], t.id)
		}
		slices.Sort(p.created[creator])
	}
	slices.SortFunc(p.tenants, func(a, b savedTenant) int { return strings.Compare(a.ID, b.ID) })
	for i := range p.tenants {
		slices.SortFunc(p.tenants[i].segments, func(a, b *state.Segment) int { return strings.Compare(a.Key, b.Key) })
		slices.SortFunc(p.tenants[i].flags, func(a, b *state.Flag) int { return strings.Compare(a.Key, b.Key) })
	}
	slices.SortFunc(p.users, func(a, b savedUser) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(p.clients, func(a, b Client) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(p.ended, func(a, b savedSession) int {
		return cmp.Or(strings.Compare(a.Session.UserID, b.Session.UserID), strings.Compare(a.Session.ID, b.Session.ID))
	})
	p.served = serves(s, attributes(`{"plan":"pro","n":5,"a":{"b":"1.0.0"},"company":{"id":"c"}}`))
	return p
}

// serves lists what each flag serves a user in each environment of its tenant.
func serves(s *Snapshot, sent map[string]any) (list []string) {
	for _, t := range s.tenants.All() {
		for key := range t.flags.All() {
			f, dependencies, _ := t.FlagWithDependencies(key)
			for _, e := range t.Environments() {
				x := &evaluation.Context{TargetingKey: "u", Attributes: sent, Dependencies: dependencies}
				r, err := f.Evaluate(e.ID, x)
				list = append(list, fmt.Sprint(t.id, " ", key, " ", e.ID, " ", shown(r), " ", err))
			}
		}
	}
	slices.Sort(list)
	return list
}

// drawChange draws changes of a few tenants, people, projects and clients.
func drawChange(t *rapid.T) (stream string, fact events.Fact) {
	pick := func(names ...string) string { return evaluationtest.Sample(t, names) }
	tenant, user, project, client := pick("t", "t2"), pick("u1", "u2", "u3"), pick("p1", "p2"), pick("c1", "c2")
	another := events.EnvironmentRef{ID: "e3", Name: "staging"}
	environment := evaluationtest.Sample(t, append(slices.Clip(evaluationtest.Environments), another))
	at := time.Date(2126, 1, 2, 3, 4, 5, rapid.IntRange(0, 2).Draw(t, "ns")*1_000_000, time.UTC)
	role := evaluationtest.Sample(t, []events.Role{events.AdminRole, events.ViewerRole})
	ofTenant := func(fact events.Fact) (string, events.Fact) { return events.TenantStream(tenant), fact }
	ofUser := func(fact events.Fact) (string, events.Fact) { return events.UserStream(user), fact }
	switch rapid.IntRange(0, 23).Draw(t, "change") {
	case 0, 1:
		return ofTenant(
			events.TenantCreated{
				ID:            tenant,
				Name:          pick("Acme", "Größe"),
				Sandbox:       evaluationtest.OneIn(t, 2),
				Plan:          events.FreePlan,
				SandboxEndsAt: at,
			},
		)
	case 2:
		return ofTenant(events.EnvironmentAdded{Environment: another})
	case 3:
		return ofTenant(events.EnvironmentDeleted{Environment: environment})
	case 4:
		if evaluationtest.OneIn(t, 2) {
			return ofTenant(events.FlagRulesChanged{To: events.FlagRules{
				Naming: &events.FlagNaming{Pattern: pick("A", "B")}, RequireReason: []events.EnvironmentRef{environment},
			}})
		}
		return ofTenant(events.TenantUpdated{Name: &events.Change[string]{To: pick("A", "B")}})
	case 5:
		if evaluationtest.OneIn(t, 3) {
			return ofTenant(events.TenantDeleted{})
		}
		return ofTenant(events.MemberInvited{ID: user, Role: role})
	case 6, 7:
		return ofTenant(events.MemberAdded{UserID: user, Role: role})
	case 8:
		return ofTenant(events.MemberJoined{ID: "m", UserID: user, Role: role})
	case 9:
		return ofTenant(events.MemberRoleChanged{UserID: user, To: role})
	case 10:
		return ofTenant(events.MemberRemoved{UserID: user})
	case 11:
		return ofTenant(
			events.OAuthClientCreated{
				ClientID:   client,
				Scopes:     evaluationtest.Sample(t, [][]events.Scope{nil, {events.FlagsEvaluate, events.FlagsRead}}),
				SecretHash: []byte{1, 0, 255},
			},
		)
	case 12:
		if evaluationtest.OneIn(t, 2) {
			return ofTenant(events.OAuthClientDeleted{ClientID: client})
		}
		return ofTenant(events.OAuthSecretRotated{ClientID: client, SecretHash: []byte(pick("x", "y")), PreviousUntil: at})
	case 13:
		return ofTenant(keyFact(t, tenant+pick("k1", "k2"), environment, at))
	case 14:
		return ofTenant(
			events.SubscriptionChanged{
				To: events.Subscription{
					ID:                "sub",
					CustomerID:        "cus",
					Plan:              events.StandardPlan,
					Status:            events.Active,
					PeriodEnd:         at,
					CancelAtPeriodEnd: evaluationtest.OneIn(t, 2),
				},
			},
		)
	case 15:
		return events.ProjectStream(project), events.ProjectCreated{
			ID:       project,
			TenantID: map[string]string{"p1": "t", "p2": "t2"}[project],
		}
	case 16:
		return events.ProjectStream(project), events.ProjectDeleted{}
	case 17:
		return ofUser(events.UserRegistered{ID: user})
	case 18:
		return ofUser(events.SessionEnded{UserID: user, SessionID: pick("s1", "s2"), Until: at})
	case 19:
		return ofUser(events.SessionsEnded{Before: at, Except: pick("", "s1")})
	case 20:
		return ofUser(events.PlatformRoleChanged{To: evaluationtest.Sample(t, []events.PlatformRole{"", events.SuperUser})})
	case 21:
		return ofUser(events.UserDeactivated{})
	case 22:
		return ofUser(events.UserReactivated{})
	default:
		return ofUser(events.UserErased{})
	}
}

// drawPrerequisites draws what a flag requires of others, which may not exist.
func drawPrerequisites(t *rapid.T) events.Recorded {
	keys := []string{"k", "k2", "none"}
	change := events.PrerequisitesChanged{Environment: evaluationtest.Sample(t, evaluationtest.Environments)}
	for range rapid.IntRange(0, 2).Draw(t, "prerequisites") {
		change.To = append(change.To, events.Prerequisite{
			FlagKey: evaluationtest.Sample(t, keys), Off: evaluationtest.OneIn(t, 2),
			Serves: []events.ServedValue{{VariationID: "a"}},
		})
	}
	return recorded(events.FlagStream("t", evaluationtest.Sample(t, keys[:2])), 0, change)
}

// drawLog draws mixed events of flags and others. The flags change in current or former environments of their tenants.
func drawLog(t *rapid.T) (log []events.Recorded) {
	var flags [][]events.Recorded
	for _, key := range []string{"k", "k2"} {
		var list []events.Recorded
		project := evaluationtest.Sample(t, []string{"", "p1", "p2"})
		evaluationtest.DrawFlag(t, func(e events.Recorded, _ *state.Flag) {
			if created, ok := e.Fact.(events.FlagCreated); ok {
				created.Key, created.ProjectID = key, project
				e.Fact = created
			}
			e.Stream = events.FlagStream(evaluationtest.Sample(t, []string{"t", "t", "t", "t2"}), key)
			list = append(list, e)
		})
		flags = append(flags, list)
	}
	revisions, tenants := map[string]events.Revision{}, map[string]bool{}
	add := func(e events.Recorded) {
		revisions[e.Stream]++
		e.Revision, e.Time = revisions[e.Stream], time.Date(2026, 1, 1, 0, 0, len(log), 0, time.UTC)
		e.At = e.Time
		e.Position = events.Position{Commit: uint64(len(log) + 1), Prepare: uint64(len(log) + 1)}
		log = append(log, e)
	}
	create := func(fact events.TenantCreated) {
		if tenants[fact.ID] {
			return
		}
		tenants[fact.ID] = true
		stream := events.TenantStream(fact.ID)
		add(recorded(stream, 0, fact))
		for _, e := range evaluationtest.Environments {
			add(recorded(stream, 0, events.EnvironmentAdded{Environment: e}))
		}
	}
	for _, id := range []string{"t", "t2"} {
		create(events.TenantCreated{ID: id, Plan: events.FreePlan})
	}
	for len(flags[0])+len(flags[1]) > 0 {
		var e events.Recorded
		if of := rapid.IntRange(0, 4).Draw(t, "of"); of < 2 && len(flags[of]) > 0 {
			e, flags[of] = flags[of][0], flags[of][1:]
		} else if of == 4 {
			e = drawPrerequisites(t)
		} else {
			e.Stream, e.Fact = drawChange(t)
		}
		switch fact := e.Fact.(type) {
		case events.TenantCreated:
			create(fact)
			continue
		case events.TenantDeleted:
			delete(tenants, strings.TrimPrefix(e.Stream, events.TenantStream("")))
		}
		add(e)
	}
	return log
}

func (s *Snapshot) applyAll(list []events.Recorded) {
	for _, e := range list {
		s.apply(events.Page{Events: []events.Recorded{e}, Next: e.Position}, slog.New(slog.DiscardHandler))
	}
}

type failer interface {
	Fatalf(format string, args ...any)
}

func atOnce(time.Duration) error { return nil }

// reloaded writes a snapshot to disk and reads it.
func reloaded(t failer, s *Snapshot, path string) *Snapshot {
	if _, err := s.copyContents().write(path, atOnce); err != nil {
		t.Fatalf("%v", err)
	}
	read, err := ReadSaved(context.Background(), path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	r := New(Options{})
	r.adopt(read)
	return r
}

func TestASnapshotFromDiskIsTheSameAndGoesOnTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	compared, faulty := 0, 0
	evaluationtest.CheckUntil(t, func() bool { return compared > 0 && faulty > 0 }, func(t *rapid.T) {
		log := drawLog(t)
		saved := rapid.IntRange(1, len(log)).Draw(t, "saved after")
		s := New(Options{})
		s.applyAll(log[:saved])
		if s.Faults() > 0 {
			if faulty++; s.copyContents() != nil {
				t.Fatalf("a snapshot that left out events would be written")
			}
			return
		}
		r := reloaded(t, s, path)
		if d := difference(s, r); d != "" {
			t.Fatalf("from disk (+): %s", d)
		}
		s.applyAll(log[saved:])
		r.applyAll(log[saved:])
		if s.Faults() != r.Faults() {
			t.Fatalf("%d events are left out, from disk %d", s.Faults(), r.Faults())
		}
		if s.Faults() > 0 {
			return
		}
		if d := difference(s, r); d != "" {
			t.Fatalf("from disk, with the events that followed (+): %s", d)
		}
		compared++
		sent := attributes(evaluationtest.DrawAttributes(t, 3))
		if d := gocmp.Diff(serves(s, sent), serves(r, sent)); d != "" {
			t.Fatalf("from disk, flags serve (+): %s", d)
		}
	})
	if compared == 0 || faulty == 0 {
		t.Errorf("%d were compared, %d had left out events", compared, faulty)
	}
}

// Lists of flags are cached under the position of the last change. For a snapshot from disk, that is its own position:
// with an earlier one, rows without its last changes would be cached as current.
func TestFlagsFromDiskChangedAtItsPosition(t *testing.T) {
	s := of(made(events.BooleanFlag, "false"))
	position := events.Position{Commit: 7, Prepare: 7}
	e := recorded(events.FlagStream("t", "k"), 2, events.FlagEnabled{Environment: production})
	e.Position = position
	s.applyAll([]events.Recorded{e})
	tenant, ok := reloaded(t, s, filepath.Join(t.TempDir(), "snapshot")).Tenant("t")
	if !ok {
		t.Fatal("the copy on disk lacks the tenant")
	}
	if got := tenant.FlagsChanged(); got != position {
		t.Errorf("the flags changed last at %s, want %s", got, position)
	}
}

// keyFact draws a fact of an evaluation key.
func keyFact(t *rapid.T, id string, in events.EnvironmentRef, at time.Time) events.TenantFact {
	material := events.KeyMaterial{Key: "pk_" + id + evaluationtest.Sample(t, []string{"a", "b", "c"})}
	switch evaluationtest.Sample(t, []int{0, 1, 2, 3}) {
	case 0:
		return events.EvaluationKeyChanged{KeyID: id, Origins: &events.Change[[]string]{To: []string{"https://a.example"}}}
	case 1:
		return events.EvaluationKeyRotated{KeyID: id, KeyMaterial: material, PreviousUntil: at.Add(time.Hour)}
	case 2:
		return events.EvaluationKeyRemoved{KeyID: id}
	default:
		return events.EvaluationKeyAdded{KeyID: id, Kind: events.BrowserKey, Environment: in, KeyMaterial: material}
	}
}
