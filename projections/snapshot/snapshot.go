// Package snapshot holds in memory what every request needs: compiled flags, and who may do what. One subscription
// updates it. Readers take no lock and never wait.
package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/retry"
)

// Snapshot is the state of all tenants at a position of the log; before Ready it is not complete. Its methods may be
// used while Run runs.
type Snapshot struct {
	tenants *xsync.Map[string, *Tenant]
	created createdTenants
	users   *xsync.Map[string, *User]
	clients *xsync.Map[string, *Client]
	// evaluationKeys has the keys by the hash of what callers send, now and before a rotation.
	evaluationKeys *xsync.Map[[sha256.Size]byte, *EvaluationKey]
	ended          *xsync.Map[session, time.Time] // sessions, and when the last of their tokens expires
	sessionsSwept  time.Time                      // when sweepSessions last ran
	projects       map[string]*Tenant             // by project id; only apply uses it
	position       atomic.Pointer[events.Position]
	faults         atomic.Int64
	salts          salts
	broken         brokenFlags
	changes        changes
	engine         string                 // of the store; set by Run
	logName        atomic.Pointer[string] // of the log in the snapshot; empty while that has no events
	ready          chan struct{}
	isReady        sync.Once
	live           atomic.Bool // all of the log was in the snapshot at some time

	applying sync.Mutex      // held while a page is applied
	logID    string          // of the log in the snapshot, as in events.LogPosition
	last     events.EventRef // the last event in the snapshot

	announcer *announcer // nil if listeners are informed at once
	copy      *diskCopy  // nil without one
}

// Options choose what a snapshot does beside following the log. All may be missing.
type Options struct {
	// Shown returns once lists hold the changes up to a position, or ctx ends. Listeners wait for it, at most a second.
	Shown func(ctx context.Context, position events.Position)
	// File is the path of a copy on disk: Run begins with it, and writes it from time to time and at its end. A file
	// that is damaged, of a different version or log, or of events that the log no longer holds, is ignored. It is
	// served while the event store cannot be reached.
	File  string
	Saved *Saved                   // the content of File, if it has been read already
	Began func(events.LogPosition) // receives the position of the file that Run begins with
	Salts Salts                    // of private segments
}

// New returns an empty snapshot.
func New(o Options) *Snapshot {
	s := &Snapshot{
		tenants:        xsync.NewMap[string, *Tenant](),
		created:        createdTenants{by: map[string][]*Tenant{}},
		users:          xsync.NewMap[string, *User](),
		clients:        xsync.NewMap[string, *Client](),
		evaluationKeys: xsync.NewMap[[sha256.Size]byte, *EvaluationKey](),
		ended:          xsync.NewMap[session, time.Time](),
		projects:       map[string]*Tenant{},
		changes:        changes{size: maxChanges},
		salts:          newSalts(o.Salts),
		broken:         brokenFlags{marked: map[*Tenant]bool{}, more: make(chan struct{}, 1)},
		ready:          make(chan struct{}),
	}
	s.position.Store(&events.Position{})
	s.logName.Store(new(string))
	if o.Shown != nil {
		s.announcer = &announcer{shown: o.Shown, arrived: make(chan struct{}, 1)}
	}
	if o.File != "" {
		s.copy = &diskCopy{path: o.File, saved: o.Saved, began: o.Began}
	}
	return s
}

// Run updates the snapshot until ctx ends, and calls applied with each page that the snapshot holds. If the store
// fails, the snapshot stays, and Run subscribes again from its position.
func (s *Snapshot) Run(ctx context.Context, store events.Store, applied func(events.Page), log *slog.Logger) {
	s.engine = store.Engine()
	var beside sync.WaitGroup
	if s.announcer != nil {
		beside.Go(func() { s.announcer.run(ctx, s.changes.publish) })
	}
	if s.copy != nil {
		s.begin(ctx, store, log)
		beside.Go(func() { s.serveIfUnreachable(ctx, store, log) })
		beside.Go(func() { s.copy.saveFromTimeToTime(ctx, s, log) })
	}
	beside.Go(func() { s.loadSalts(ctx, log) })
	beside.Go(func() { s.countBroken(ctx) })
	s.follow(ctx, store, applied, log)
	beside.Wait()
	if s.copy != nil {
		s.copy.save(s, func(time.Duration) error { return nil }, log)
	}
}

// follow applies the log until ctx ends.
func (s *Snapshot) follow(ctx context.Context, store events.Store, applied func(events.Page), log *slog.Logger) {
	retry.Forever(ctx, func(progressed func()) error {
		err := s.confirm(ctx, store, log)
		if err == nil {
			err = s.followOnce(ctx, store, progressed, applied, log)
			if s.copy != nil { // after a failover, a standby may lack the last events
				s.copy.unconfirmed = true
			}
		}
		return err
	}, func(err error, wait time.Duration) {
		log.Error("the snapshot is not updated: the event store cannot be read", "position", s.Position(),
			"retry_in", wait, "err", err)
	})
}

// followOnce applies the log until an error.
func (s *Snapshot) followOnce(
	ctx context.Context, store events.Store, progressed func(), applied func(events.Page), log *slog.Logger,
) error {
	for page, err := range store.Subscribe(ctx, s.Position()) {
		if err != nil {
			return err
		}
		progressed()
		s.apply(page, log)
		applied(page)
	}
	return nil
}

// Ready is closed once the snapshot holds all that was in the log at the start, or the copy on disk while the event
// store cannot be reached.
func (s *Snapshot) Ready() <-chan struct{} { return s.ready }

// Position returns the position that the snapshot has reached: it holds all events up to it.
func (s *Snapshot) Position() events.Position { return *s.position.Load() }

// Faults counts the events that could not be applied. Their subjects stay as they were before.
func (s *Snapshot) Faults() int64 { return s.faults.Load() }

// handlers apply the facts by kind of stream.
var handlers = events.NewByStream(
	handler((*Snapshot).applyFlag),
	handle((*Snapshot).applyProject),
	handle((*Snapshot).applyTenant),
	handle((*Snapshot).applyUser),
	handle(func(*Snapshot, events.Recorded, events.InvitationFact) error { return nil }), // no request needs invitations
	handler((*Snapshot).applySegment),
)

// handler applies events of one stream, which follow each other in the log. It calls fault for those that it cannot
// apply.
type handler func(s *Snapshot, run []events.Recorded, fault func(events.Recorded, error))

func handle[F events.Fact](apply func(*Snapshot, events.Recorded, F) error) handler {
	return func(s *Snapshot, run []events.Recorded, fault func(events.Recorded, error)) {
		for e, fact := range facts[F](run, fault) {
			if err := apply(s, e, fact); err != nil {
				fault(e, err)
			}
		}
	}
}

// facts yields the events with their facts, which are of one kind of stream. It calls fault for all others.
func facts[F events.Fact](run []events.Recorded, fault func(events.Recorded, error)) iter.Seq2[events.Recorded, F] {
	return func(yield func(events.Recorded, F) bool) {
		for _, e := range run {
			fact, ok := e.Fact.(F)
			switch {
			case e.Err != nil:
				fault(e, e.Err)
			case !ok:
				fault(e, errors.New("the fact belongs to another kind of stream"))
			case !yield(e, fact):
				return
			}
		}
	}
}

// apply applies a page. Only Run calls it.
func (s *Snapshot) apply(page events.Page, log *slog.Logger) {
	s.applying.Lock()
	defer s.applying.Unlock()
	fault := func(e events.Recorded, err error) {
		s.faults.Add(1)
		log.Error("the snapshot could not apply an event", "stream", e.Stream, "revision", e.Revision, "event", e.Name,
			"err", err)
	}
	for run := range runs(page.Events) {
		if handle, known := handlers.Lookup(run[0].Stream); known {
			handle(s, run, fault)
			continue
		}
		for _, e := range run {
			fault(e, errors.New("unknown kind of stream"))
		}
	}
	if len(page.Events) > 0 && s.logID == "" {
		s.setLogID(events.LogID(page.Events[0]))
	}
	if n := len(page.Events); n > 0 {
		s.last = events.RefTo(page.Events[n-1])
	}
	s.position.Store(&page.Next)
	s.announce(s.changes.take(page.Next))
	if page.Live && !s.live.Load() {
		s.live.Store(true)
		s.becomeReady()
	}
}

func (s *Snapshot) becomeReady() { s.isReady.Do(func() { close(s.ready) }) }

func (s *Snapshot) setLogID(id string) {
	s.logID = id
	s.logName.Store(new(s.engine + " " + id))
}

// runs yields the events in pieces of one stream each. The events of an append are in one piece.
func runs(list []events.Recorded) iter.Seq[[]events.Recorded] {
	return func(yield func([]events.Recorded) bool) {
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(e events.Recorded) bool { return e.Stream != list[0].Stream })
			if n < 0 {
				n = len(list)
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// applyFlag applies all events before it shows any, so that no evaluation sees a part of an append. A flag that cannot
// be compiled serves as far as it can.
func (s *Snapshot) applyFlag(run []events.Recorded, fault func(events.Recorded, error)) {
	tenantID, key := events.ParseFlagStream(run[0].Stream)
	t, ok := s.tenants.Load(tenantID)
	if !ok { // deleted meanwhile
		return
	}
	before, _ := t.flags.Load(key)
	var next state.Flag
	if before != nil {
		next = before.State().Clone()
	}
	changed, last := environmentIDs{}, run[len(run)-1]
	for e, fact := range facts[events.FlagFact](run, fault) {
		t.flagsChanged.Store(&e.Position)
		environmentID, _ := concerns(fact)
		changed[environmentID] = true
		was := next.Exists && next.ClientSide
		next.Apply(e)
		s.changes.note(t, key, e, fact, was, next.ClientSide)
	}
	var after *Flag
	if next.Exists {
		var err error
		if after, err = newFlag(&next, t.state.Load().Environments, before); err != nil {
			fault(run[len(run)-1], err)
		}
	}
	t.count(before, -1)
	t.count(after, +1)
	next.Key = strings.Clone(key) // else the key would keep the stream's name in memory
	t.showFlag(next.Key, before, after, &next)
	cameOrWent := (before == nil) != (after == nil)
	if len(before.dependencies()) > 0 || len(after.dependencies()) > 0 || cameOrWent && t.dependents.requires(key) {
		s.broken.mark(t)
	}
	if cameOrWent {
		t.keysGeneration.Add(1)
	}
	if dependents := t.flagChange(key, changed.has); dependents != nil {
		s.changes.add(t, Change{Position: last.Position, Time: last.At, Dependents: dependents})
	}
}

// environmentIDs is a set of environments; an empty id in it stands for all.
type environmentIDs map[string]bool

func (s environmentIDs) has(id string) bool { return s[id] || s[""] }

func (s *Snapshot) applyProject(e events.Recorded, fact events.ProjectFact) error {
	id := strings.TrimPrefix(e.Stream, events.ProjectStream(""))
	switch fact := fact.(type) {
	case events.ProjectCreated:
		if t, ok := s.tenants.Load(fact.TenantID); ok {
			t.projects.Store(id, &project{})
			s.projects[id] = t
		}
	case events.ProjectUpdated:
	case events.ProjectDeleted:
		if t, ok := s.projects[id]; ok {
			t.projects.Delete(id)
			delete(s.projects, id)
		}
	}
	return nil
}

// applyTenant creates a tenant at its first fact and drops it at its last. Later facts of its parts are ignored, so
// that no memory is used for them.
func (s *Snapshot) applyTenant(e events.Recorded, fact events.TenantFact) error {
	id := strings.TrimPrefix(e.Stream, events.TenantStream(""))
	t, ok := s.tenants.Load(id)
	if _, created := fact.(events.TenantCreated); !ok && created {
		t = newTenant(strings.Clone(id))
		s.tenants.Store(t.id, t)
		s.created.add(e.Actor.ID, t)
	} else if !ok {
		return nil
	}
	next := *t.state.Load()
	switch fact := fact.(type) {
	case events.TenantCreated:
		next.Exists, next.Name, next.Sandbox, next.Subscription = true, fact.Name, fact.Sandbox, fact.FirstSubscription()
		next.Creator, next.SandboxEnd = e.Actor.ID, fact.SandboxEndsAt
	case events.SubscriptionChanged:
		next.Subscription = fact.To
	case events.EnvironmentAdded:
		next.Environments = append(next.Environments[:len(next.Environments):len(next.Environments)], fact.Environment)
		next.AddedAt = maps.Clone(next.AddedAt)
		if next.AddedAt == nil {
			next.AddedAt = map[string]time.Time{}
		}
		next.AddedAt[fact.Environment.ID] = e.At
	case events.MemberAdded:
		s.addMember(t, next.Creator, fact.UserID, member{Role: fact.Role})
	case events.TenantUpdated:
		fact.Name.Apply(&next.Name)
	case events.FlagRulesChanged:
		next.FlagRules = fact.To
	case events.TenantDeleted:
		s.created.remove(next.Creator, t)
		s.removeEvaluationKeys(&next, "")
		next = tenantState{}
		t.flags.Clear()
		s.salts.forgetTenant(t)
		t.dependencies.Store(nil)
		if t.dependents.clear() {
			s.broken.mark(t)
		}
		t.flagBytes.Store(0)
		t.projects.Range(func(id string, _ *project) bool {
			delete(s.projects, id)
			return true
		})
		t.projects.Clear()
		s.removeClients(t)
		t.members.Range(func(userID string, _ member) bool {
			s.removeMember(t, userID, e.Time)
			return true
		})
		s.tenants.Delete(t.id)
	case events.EnvironmentDeleted:
		next.Environments = slices.DeleteFunc(slices.Clone(next.Environments),
			func(e events.EnvironmentRef) bool { return e.ID == fact.Environment.ID })
		next.AddedAt = maps.Clone(next.AddedAt)
		delete(next.AddedAt, fact.Environment.ID)
		next.FlagRules = next.FlagRules.WithoutEnvironment(fact.Environment.ID)
		s.removeEvaluationKeys(&next, fact.Environment.ID)
	case events.EnvironmentsArranged:
		next.Environments = fact.Order()
	case events.MemberInvited:
	case events.MemberJoined:
		if _, ok := t.members.Load(fact.UserID); !ok {
			s.addMember(t, next.Creator, fact.UserID, member{fact.Role, e.At})
		}
	case events.MemberRoleChanged:
		if m, ok := t.members.Load(fact.UserID); ok { // not a pending one
			m.Role = fact.To
			t.members.Store(fact.UserID, m)
		}
	case events.MemberRemoved:
		s.removeMember(t, fact.UserID, e.Time)
	case events.OAuthClientCreated, events.OAuthSecretRotated, events.OAuthClientDeleted:
		s.applyClient(t, e)
	case events.EvaluationKeyAdded, events.EvaluationKeyChanged, events.EvaluationKeyRotated, events.EvaluationKeyRemoved:
		s.applyEvaluationKey(t, &next, e)
	}
	t.state.Store(&next)
	if fact, deleted := fact.(events.EnvironmentDeleted); deleted {
		t.removeEnvironment(fact.Environment.ID)
		t.flagsChanged.Store(&e.Position) // drops its usage times too
		s.broken.mark(t)
	}
	s.changes.notifyAccess(t)
	return nil
}

func (s *Snapshot) addMember(t *Tenant, creator, userID string, m member) {
	t.members.Store(userID, m)
	u := s.User(userID)
	if creator == userID && (len(u.Tenants) == 0 || s.CreatorOf(u.Tenants[0]) != userID) {
		u.Tenants = slices.Concat([]string{t.id}, u.Tenants)
	} else {
		u.Tenants = append(u.Tenants[:len(u.Tenants):len(u.Tenants)], t.id)
	}
	s.users.Store(userID, &u)
}

func (s *Snapshot) removeMember(t *Tenant, userID string, at time.Time) {
	if _, ok := t.members.LoadAndDelete(userID); !ok {
		return
	}
	u := s.User(userID)
	wasFirst := slices.Index(u.Tenants, t.id) == 0
	u.Tenants = slices.DeleteFunc(slices.Clone(u.Tenants), func(id string) bool { return id == t.id })
	if own := slices.IndexFunc(u.Tenants, func(id string) bool { return s.CreatorOf(id) == userID }); wasFirst && own > 0 {
		next := u.Tenants[own]
		u.Tenants = slices.Insert(slices.Delete(u.Tenants, own, own+1), 0, next)
	}
	s.keepUser(userID, u, at)
}
