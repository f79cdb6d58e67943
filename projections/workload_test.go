package projections_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

// workload creates changes of one tenant: facts of every kind, each valid after the earlier ones. The same seed creates
// the same facts.
type workload struct {
	*rand.Rand
	source       *rand.ChaCha8
	tenant       string
	now          time.Time
	revisions    map[string]events.Revision
	environments []events.EnvironmentRef
	projects     []string
	people       []string
	members      []string
	clients      []string                   // OAuth clients
	keys         []string                   // evaluation keys
	segments     map[string]events.Revision // of each segment, by key; 0 if it is deleted
	invited      []string
	flags        map[string]*events.FlagCreated // current flags by key; nil if deleted
	rules        map[string][]events.Rule       // by the flag's id and the environment's
	seen         map[string]bool                // stored names of all facts so far
}

func newWorkload(seed byte) *workload {
	source := rand.NewChaCha8([32]byte{seed})
	return &workload{
		Rand:      rand.New(source),
		source:    source,
		tenant:    fmt.Sprintf("t%d", seed),
		now:       time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		revisions: map[string]events.Revision{},
		flags:     map[string]*events.FlagCreated{},
		segments:  map[string]events.Revision{},
		rules:     map[string][]events.Rule{},
		seen:      map[string]bool{},
	}
}

func (l *workload) newID() string { return uuid.Must(uuid.NewRandomFromReader(l.source)).String() }

func pick[T any](l *workload, list []T) T { return list[l.IntN(len(list))] }

// sometimes returns true one time out of n.
func (l *workload) sometimes(n int) bool { return l.IntN(n) == 0 }

// run appends facts until the tenant's streams have at least n events.
func (l *workload) run(t *testing.T, store events.Store, atLeast int) {
	for total := 0; total < atLeast; {
		stream, facts := l.next()
		var batch []events.Event
		for _, fact := range facts {
			l.now = l.now.Add(time.Duration(l.IntN(5000)) * time.Millisecond)
			l.seen[fact.StoredName()] = true
			batch = append(batch, events.Event{
				ID: uuid.MustParse(l.newID()),
				Metadata: events.Metadata{
					Time: l.now,
					Actor: events.Actor{
						Kind: pick(l, []events.ActorKind{events.UserActor, events.ClientActor, events.SystemActor}),
						ID:   l.newID(),
					},
					RequestID: l.newID(),
					Reason:    pick(l, []string{"", "why <not> & \"so\"", "größer"}),
				},
				Fact: fact,
			})
		}
		if _, err := store.Append(t.Context(), stream, l.revisions[stream], batch); err != nil {
			t.Errorf("append to %s: %v", stream, err)
			return
		}
		l.revisions[stream] += events.Revision(len(batch))
		total += len(batch)
	}
}

// next chooses the next change and its stream.
func (l *workload) next() (stream string, facts []events.Fact) {
	if len(l.environments) == 0 {
		sandbox := l.sometimes(2)
		return events.TenantStream(l.tenant), []events.Fact{
			events.TenantCreated{
				ID:      l.tenant,
				Name:    "Tenant",
				Sandbox: sandbox,
				Plan:    events.FreePlan,
			},
			l.environment(),
			l.environment(),
		}
	}
	switch l.IntN(32) {
	case 0:
		return events.TenantStream(l.tenant), []events.Fact{l.environment()}
	case 1:
		user := l.newID()
		l.people = append(l.people, user)
		return events.UserStream(user), []events.Fact{events.UserRegistered{ID: user, Provider: "password"}}
	case 2:
		return events.TenantStream(l.tenant), []events.Fact{l.newMember()}
	case 3:
		if len(l.people) > 0 {
			user := pick(l, l.people)
			if l.sometimes(2) {
				return events.UserStream(user), []events.Fact{events.SessionsEnded{Before: l.now, Except: l.newID()}}
			}
			return events.UserStream(user), []events.Fact{events.SessionEnded{UserID: user, SessionID: l.newID(), Until: l.now}}
		}
	case 4, 5:
		return l.project()
	case 6:
		if len(l.members) > 0 {
			return events.TenantStream(l.tenant), []events.Fact{l.member()}
		}
	case 7:
		return l.tenantItself()
	case 8:
		return events.TenantStream(l.tenant), []events.Fact{l.client()}
	case 9:
		return events.TenantStream(l.tenant), []events.Fact{l.evaluationKey()}
	case 10:
		if len(l.people) > 0 {
			return events.UserStream(pick(l, l.people)), []events.Fact{l.platform()}
		}
	case 30, 31:
		return l.segment()
	case 11:
		return l.invitation()
	}
	return l.flag()
}

func (l *workload) role() events.Role {
	return pick(l, []events.Role{events.AdminRole, events.DeveloperRole, events.ViewerRole})
}

// platform changes a person.
func (l *workload) platform() events.Fact {
	return pick(l, []events.Fact{
		events.PlatformRoleChanged{
			To: l.platformRole(),
		},
		events.UserDeactivated{},
		events.UserReactivated{},
		events.UserErased{},
	})
}

func (l *workload) platformRole() events.PlatformRole {
	return pick(l, []events.PlatformRole{events.SuperUser, events.PlatformAdmin, events.PlatformViewer})
}

func (l *workload) invitation() (stream string, facts []events.Fact) {
	if len(l.invited) == 0 || l.sometimes(2) {
		id := l.newID()
		l.invited = append(l.invited, id)
		return events.InvitationStream(id), []events.Fact{
			events.InvitationCreated{ID: id, Role: l.platformRole(), ExpiresAt: l.now.Add(time.Hour)},
		}
	}
	return events.InvitationStream(pick(l, l.invited)), []events.Fact{pick(l, []events.Fact{
		events.InvitationResent{
			ExpiresAt: l.now.Add(2 * time.Hour),
		},
		events.InvitationRevoked{},
		events.InvitationAccepted{UserID: l.newID()},
	})}
}

func (l *workload) newMember() events.Fact {
	id := l.newID()
	l.members = append(l.members, id)
	if l.sometimes(2) {
		return events.MemberInvited{ID: id, Role: l.role()}
	}
	return events.MemberAdded{UserID: id, Role: l.role()}
}

// member changes a member.
func (l *workload) member() events.Fact {
	i := l.IntN(len(l.members))
	id := l.members[i]
	switch l.IntN(3) {
	case 0:
		l.members = append(l.members[:i:i], l.members[i+1:]...)
		return events.MemberRemoved{UserID: id}
	case 1:
		l.members[i] = l.newID()
		return events.MemberJoined{ID: id, UserID: l.members[i], Role: l.role()}
	default:
		return events.MemberRoleChanged{UserID: id, From: l.role(), To: l.role()}
	}
}

// tenantItself changes the tenant, or a whole other one.
func (l *workload) tenantItself() (stream string, facts []events.Fact) {
	switch {
	case l.sometimes(3):
		id := l.newID()
		return events.TenantStream(id), []events.Fact{
			events.TenantCreated{
				ID:   id,
				Name: l.text(),
				Plan: events.FreePlan,
			},
			events.MemberAdded{UserID: l.newID(), Role: l.role()},
			events.EnvironmentAdded{Environment: events.EnvironmentRef{ID: l.newID(), Name: "e"}},
			events.TenantDeleted{},
		}
	case l.sometimes(3):
		return events.TenantStream(l.tenant), []events.Fact{events.SubscriptionChanged{To: l.subscription()}}
	case len(l.environments) > 2 && l.sometimes(2):
		gone := l.environments[0]
		l.environments = l.environments[1:]
		return events.TenantStream(l.tenant), []events.Fact{events.EnvironmentDeleted{Environment: gone}}
	default:
		var arrangement []events.ArrangedEnvironment
		for _, e := range slices.Backward(l.environments) {
			arrangement = append(arrangement, events.ArrangedEnvironment{Environment: e, Color: "#1c7ed6"})
		}
		return events.TenantStream(l.tenant), []events.Fact{
			events.TenantUpdated{Name: maybe(l, l.text()), Contact: []events.ContactField{events.PrimaryEmail}},
			events.FlagRulesChanged{To: events.FlagRules{RequireReason: l.environments, RequireOwner: true}},
			events.EnvironmentsArranged{To: arrangement},
		}
	}
}

func (l *workload) subscription() events.Subscription {
	return events.Subscription{
		ID:                l.newID(),
		CustomerID:        l.newID(),
		Plan:              pick(l, events.Plans).Plan,
		Status:            pick(l, []events.SubscriptionStatus{events.Active, events.PastDue, events.Canceled}),
		BillingCycle:      pick(l, []events.BillingCycle{"", events.Monthly, events.Yearly}),
		PeriodStart:       l.now,
		PeriodEnd:         l.now.Add(time.Hour),
		CancelAtPeriodEnd: l.sometimes(2),
	}
}

func (l *workload) environment() events.Fact {
	ref := events.EnvironmentRef{ID: l.newID(), Name: "env-" + l.newID()}
	l.environments = append(l.environments, ref)
	return events.EnvironmentAdded{Environment: ref}
}

func (l *workload) client() events.Fact {
	if len(l.clients) == 0 || l.sometimes(2) {
		id := l.newID()
		l.clients = append(l.clients, id)
		return events.OAuthClientCreated{
			ClientID:   id,
			Name:       l.text(),
			Scopes:     []events.Scope{events.FlagsEvaluate, events.FlagsRead},
			SecretHash: []byte(l.newID()),
		}
	}
	i := l.IntN(len(l.clients))
	id := l.clients[i]
	if l.sometimes(3) {
		l.clients = append(l.clients[:i], l.clients[i+1:]...)
		return events.OAuthClientDeleted{ClientID: id}
	}
	return events.OAuthSecretRotated{ClientID: id, SecretHash: []byte(l.newID()), PreviousUntil: l.now.Add(24 * time.Hour)}
}

func (l *workload) evaluationKey() events.Fact {
	if len(l.environments) > 0 && (len(l.keys) == 0 || l.sometimes(2)) {
		id := l.newID()
		l.keys = append(l.keys, id)
		return events.EvaluationKeyAdded{
			KeyID: id, Name: l.text(), Kind: events.BrowserKey, Environment: pick(l, l.environments),
			Origins: []string{"https://a.example"}, KeyMaterial: events.KeyMaterial{Key: "pk_" + l.newID()},
		}
	}
	if len(l.keys) == 0 {
		return l.client()
	}
	i := l.IntN(len(l.keys))
	id := l.keys[i]
	switch l.IntN(3) {
	case 0:
		l.keys = append(l.keys[:i], l.keys[i+1:]...)
		return events.EvaluationKeyRemoved{KeyID: id}
	case 1:
		return events.EvaluationKeyChanged{
			KeyID: id, Name: &events.Change[string]{To: l.text()}, ExpiresAt: &events.Change[*time.Time]{To: new(l.now)},
		}
	default:
		return events.EvaluationKeyRotated{
			KeyID: id, KeyMaterial: events.KeyMaterial{Key: "pk_" + l.newID()}, PreviousUntil: l.now.Add(24 * time.Hour),
		}
	}
}

func (l *workload) project() (stream string, facts []events.Fact) {
	if len(l.projects) == 0 || l.sometimes(2) {
		id := l.newID()
		l.projects = append(l.projects, id)
		return events.ProjectStream(id), []events.Fact{
			events.ProjectCreated{ID: id, TenantID: l.tenant, Name: l.text(), Description: l.text(), Color: "#6b7280"},
		}
	}
	i := l.IntN(len(l.projects))
	stream = events.ProjectStream(l.projects[i])
	if l.sometimes(3) {
		l.projects = append(l.projects[:i], l.projects[i+1:]...)
		return stream, []events.Fact{events.ProjectDeleted{}}
	}
	return stream, []events.Fact{
		events.ProjectUpdated{Name: maybe(l, l.text()), Description: maybe(l, l.text()), Color: maybe(l, "#ffffff")},
	}
}

func (l *workload) segment() (stream string, facts []events.Fact) {
	key := fmt.Sprintf("segment.%d", l.IntN(2))
	stream = events.SegmentStream(l.tenant, key)
	if l.segments[key] == 0 {
		l.segments[key] = 1
		return stream, []events.Fact{
			events.SegmentCreated{TenantID: l.tenant, Key: key, ID: l.newID(), Name: l.text(), Description: l.text()},
		}
	}
	list, member := pick(l, []events.MemberList{events.Included, events.Excluded}), fmt.Sprint("user-", l.IntN(5))
	switch l.IntN(7) {
	case 0:
		l.segments[key] = 0
		return stream, []events.Fact{events.SegmentDeleted{}}
	case 6:
		return stream, []events.Fact{events.SegmentForgotten{SaltID: l.newID()}}
	case 1:
		return stream, []events.Fact{events.SegmentUpdated{Name: maybe(l, l.text()), Tags: &events.Change[[]string]{}}}
	case 2:
		rule := events.Rule{ID: l.newID(), Conditions: []events.Condition{{Attribute: "plan", Op: events.Exists}}}
		return stream, []events.Fact{events.ChangeSegmentRules(nil, []events.Rule{rule})}
	case 3:
		return stream, []events.Fact{events.SegmentMembersRemoved{List: list, Members: []string{member}}}
	case 4:
		return stream, []events.Fact{
			events.SegmentMembersAdded{List: list, Members: []string{member}}, events.SegmentReverted{Version: 1},
		}
	default:
		return stream, []events.Fact{events.SegmentMembersAdded{List: list, Members: []string{member}}}
	}
}

func (l *workload) flag() (stream string, facts []events.Fact) {
	// a dot: a stream's name is cut at its first one alone; every other change is of one flag, whose states are kept
	key := fmt.Sprintf("flag.%d", max(0, l.IntN(40)-20))
	stream = events.FlagStream(l.tenant, key)
	flag := l.flags[key]
	if flag == nil {
		created := events.FlagCreated{
			TenantID:     l.tenant,
			Key:          key,
			ID:           l.newID(),
			Name:         l.text(),
			Type:         events.JSONFlag,
			DefaultValue: l.value(),
			Description:  l.text(),
			Tags:         l.tags(),
			Salt:         l.newID(),
		}
		created.Permanent, created.ClientSide = len(created.Tags) == 1, len(created.Tags) == 2
		created.Owner, created.Links = l.text(), l.links()
		created.OffServes = l.offServes()
		if len(l.projects) > 0 {
			created.ProjectID = pick(l, append([]string{""}, l.projects...))
		}
		for range l.IntN(3) {
			created.Variations = append(created.Variations, l.variation())
		}
		l.flags[key] = &created
		return stream, []events.Fact{created}
	}
	for range 1 + l.IntN(2) {
		facts = append(facts, l.change(flag))
	}
	if l.sometimes(12) {
		delete(l.flags, key)
		facts = append(facts, events.FlagDeleted{})
	}
	return stream, facts
}

func (l *workload) change(flag *events.FlagCreated) events.Fact {
	switch n := l.IntN(11); {
	case n == 0:
		return events.FlagStatusChanged{
			From: events.ActiveFlag,
			To:   pick(l, []events.FlagStatus{events.ActiveFlag, events.InactiveFlag, events.ArchivedFlag}),
		}
	case n == 1:
		return events.FlagEnabled{Environment: pick(l, l.environments)}
	case n == 2:
		return events.FlagDisabled{Environment: pick(l, l.environments)}
	case n == 3:
		v := l.variation()
		flag.Variations = append(flag.Variations, v)
		return events.VariationAdded{Variation: v}
	case n == 4 && len(flag.Variations) > 0:
		return events.VariationUpdated{
			ID:          pick(l, flag.Variations).ID,
			Name:        maybe(l, l.text()),
			Value:       maybe(l, l.value()),
			Description: maybe(l, l.text()),
			Weight:      maybe(l, events.Weight(l.IntN(100_000))),
		}
	case n == 5 && len(flag.Variations) > 0:
		i := l.IntN(len(flag.Variations))
		v := flag.Variations[i]
		flag.Variations = append(flag.Variations[:i:i], flag.Variations[i+1:]...)
		return events.VariationRemoved{Variation: v}
	case n == 6:
		return l.rulesChanged(flag)
	case n == 7:
		return events.FallthroughChanged{
			Environment: pick(l, l.environments),
			To:          pick(l, []*events.Serve{nil, {Value: l.value()}}),
		}
	case n == 10:
		return events.PrerequisitesChanged{
			Environment: pick(l, l.environments), To: l.prerequisites(),
		}
	case n == 8 && len(flag.Variations) > 1:
		before := slices.Clone(flag.Variations)
		l.Shuffle(len(flag.Variations),
			func(i, j int) { flag.Variations[i], flag.Variations[j] = flag.Variations[j], flag.Variations[i] })
		return events.FlagReverted{
			Version:    1,
			Variations: &events.Change[[]string]{From: variationIDs(before), To: variationIDs(flag.Variations)},
		}
	default:
		updated := events.FlagUpdated{
			Name:         maybe(l, l.text()),
			DefaultValue: maybe(l, l.value()),
			Description:  maybe(l, l.text()),
			Tags:         maybe(l, l.tags()),
			ProjectID:    maybe(l, ""),
			Owner:        maybe(l, l.text()),
			Links:        maybe(l, l.links()),
			OffServes:    maybe(l, l.offServes()),
		}
		if updated.Tags != nil {
			updated.Permanent = &events.Change[bool]{To: len(updated.Tags.To) == 1}
			updated.ClientSide = &events.Change[bool]{To: len(updated.Tags.To) == 2}
		}
		return updated
	}
}

func (l *workload) prerequisites() []events.Prerequisite {
	return []events.Prerequisite{
		{FlagKey: fmt.Sprintf("flag.%d", l.IntN(20)), Serves: []events.ServedValue{{Value: l.value()}}},
		{FlagKey: l.text(), Off: true},
	}[:l.IntN(3)]
}

func variationIDs(list []events.Variation) (ids []string) {
	for _, v := range list {
		ids = append(ids, v.ID)
	}
	return ids
}

func (l *workload) variation() events.Variation {
	return events.Variation{
		ID:          l.newID(),
		Name:        l.text(),
		Value:       l.value(),
		Description: l.text(),
		Weight:      events.Weight(l.IntN(100_000)),
	}
}

// rulesChanged keeps, changes, moves, removes and adds rules.
func (l *workload) rulesChanged(flag *events.FlagCreated) events.Fact {
	environment := pick(l, l.environments)
	of := flag.ID + environment.ID
	before := l.rules[of]
	var after []events.Rule
	for _, i := range l.Perm(len(before)) {
		rule := before[i]
		if l.sometimes(2) {
			rule.Name, rule.Serve = l.text(), events.Serve{Value: l.value()}
		}
		if !l.sometimes(4) {
			after = append(after, rule)
		}
	}
	for range l.IntN(3) {
		after = append(after, events.Rule{
			ID:    l.newID(),
			Name:  l.text(),
			Salt:  l.newID(),
			Serve: events.Serve{Value: l.value()},
			Conditions: []events.Condition{
				{Attribute: "plan", Op: events.In, Values: []json.RawMessage{json.RawMessage(`"<é>"`), json.RawMessage(`1.50`)}},
			},
		})
	}
	l.rules[of] = after
	return events.ChangeRules(environment, before, after)
}

// maybe changes a field every other time.
func maybe[T any](l *workload, to T) *events.Change[T] {
	if l.sometimes(2) {
		return nil
	}
	return &events.Change[T]{To: to}
}

func (l *workload) text() string {
	return pick(
		l,
		[]string{
			"",
			"plain",
			"größer 😀",
			`back\slash "quoted" 'single'`,
			"line\nbreak\ttab",
			"{1,2}",
			strings.Repeat("long ", 40),
		},
	)
}

func (l *workload) tags() []string { return []string{l.text(), l.text()}[:l.IntN(3)] }

func (l *workload) offServes() events.OffServes {
	return pick(l, []events.OffServes{events.OffServesValue, events.OffServesCode})
}

func (l *workload) links() []events.Link {
	return []events.Link{{Title: l.text(), URL: l.text()}}[:l.IntN(2)]
}

// value returns JSON whose spelling must not change.
func (l *workload) value() json.RawMessage {
	return json.RawMessage(
		pick(l, []string{`9007199254740993`, `1.50`, `true`, `"<é>\u2028"`, `{"b":1,"a":[1e2,null]}`, `""`, `null`}),
	)
}

// fill runs the workloads of several tenants concurrently and checks that they include facts of every kind.
func (w *world) fill(tenants, eventsEach int) {
	w.t.Helper()
	seen := map[string]bool{}
	var mu sync.Mutex
	var parts sync.WaitGroup
	for i := range tenants {
		parts.Go(func() {
			l := newWorkload(byte(i + 1))
			l.run(w.t, w.store, eventsEach)
			mu.Lock()
			defer mu.Unlock()
			for name := range l.seen {
				seen[name] = true
			}
		})
	}
	parts.Wait()
	golden, err := filepath.Glob("../events/testdata/*.json") // one for every kind and version
	if err != nil || len(golden) == 0 {
		w.t.Fatalf("no golden files of events: %v", err)
	}
	for _, file := range golden {
		name := filepath.Base(file)
		if name = name[:strings.LastIndex(name, ".v")]; !seen[name] {
			w.t.Errorf("the workload has no %s: add a draw of it, or raise its number of events", name)
		}
	}
}
