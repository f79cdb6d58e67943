package snapshot

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

// Tenant is the part of a tenant that requests need.
type Tenant struct {
	id             string
	state          atomic.Pointer[tenantState]
	flags          *xsync.Map[string, *Flag]
	flagBytes      atomic.Int64  // of all flags and segments: see state.Flag.Bytes
	keysGeneration atomic.Uint64 // of keys: counts the flags that were created or deleted
	keys           atomic.Pointer[flagKeys]
	// flagsChanged is the position of the last change of a flag or a segment, or of all flags by a deleted environment;
	// nil before the first.
	flagsChanged atomic.Pointer[events.Position]
	members      *xsync.Map[string, member]
	dependencies atomic.Pointer[evaluation.Dependencies]
	dependents   dependents
	projects     *xsync.Map[string, *project]
	clients      []string // the ids of the OAuth clients; only apply uses it
	feed         tenantFeed
}

// tenantState holds what rarely changes. It is replaced as a whole.
type tenantState struct {
	Exists       bool
	Name         string
	Creator      string // a person's id
	Sandbox      bool
	SandboxEnd   time.Time // as recorded
	Subscription events.Subscription
	Environments []events.EnvironmentRef
	AddedAt      map[string]time.Time // when each environment was added, by id; as recorded
	FlagRules    events.FlagRules
	// EvaluationKeys has the keys of all environments, by id.
	EvaluationKeys map[string]state.EvaluationKey
}

// flagKeys holds the sorted keys of a tenant's flags at a generation.
type flagKeys struct {
	generation uint64
	keys       []string
}

type member struct {
	Role     events.Role
	JoinedAt time.Time // as recorded, of a person whom another one added or invited; zero for others
}

type project struct{ flags atomic.Int64 }

func newTenant(id string) *Tenant {
	t := &Tenant{
		id:       id,
		flags:    xsync.NewMap[string, *Flag](),
		members:  xsync.NewMap[string, member](),
		projects: xsync.NewMap[string, *project](),
	}
	t.state.Store(&tenantState{})
	return t
}

// count adds n times a flag to the tenant's bytes and to its project's number of flags.
func (t *Tenant) count(f *Flag, n int64) {
	if f == nil {
		return
	}
	t.flagBytes.Add(n * int64(f.bytes))
	if p, ok := t.projects.Load(f.State().ProjectID); ok {
		p.flags.Add(n)
	}
}

// Tenant returns a tenant, and false if there is none with this id.
func (s *Snapshot) Tenant(id string) (*Tenant, bool) {
	t, ok := s.tenants.Load(id)
	if !ok || !t.state.Load().Exists {
		return nil, false
	}
	return t, true
}

// ID returns the tenant's id.
func (t *Tenant) ID() string { return t.id }

// Name is the tenant's name.
func (t *Tenant) Name() string { return t.state.Load().Name }

// Creator is the id of the person who created the tenant.
func (t *Tenant) Creator() string { return t.state.Load().Creator }

// Plan returns the tenant's plan at a time.
func (t *Tenant) Plan(now time.Time) events.Plan {
	state := t.state.Load()
	return state.Subscription.PlanAt(now, state.Sandbox)
}

// Sandbox reports whether the tenant is a sandbox.
func (t *Tenant) Sandbox() bool { return t.state.Load().Sandbox }

// SandboxEnd returns when a sandbox stops accepting changes; zero if it does not end, and for other tenants.
func (t *Tenant) SandboxEnd() time.Time {
	state := t.state.Load()
	return state.Subscription.SandboxEnd(state.SandboxEnd)
}

// Subscription is the tenant's subscription.
func (t *Tenant) Subscription() events.Subscription { return t.state.Load().Subscription }

// Environment finds an environment by its name.
func (t *Tenant) Environment(name string) (state.Environment, bool) {
	of := t.state.Load()
	for _, e := range of.Environments {
		if e.Name == name {
			return state.Environment{EnvironmentRef: e, AddedAt: of.AddedAt[e.ID]}, true
		}
	}
	return state.Environment{}, false
}

func (t *Tenant) hasEnvironment(id string) bool {
	return slices.ContainsFunc(t.Environments(), func(e events.EnvironmentRef) bool { return e.ID == id })
}

// Environments returns the tenant's environments in its order. The caller must not change them.
func (t *Tenant) Environments() []events.EnvironmentRef { return t.state.Load().Environments }

// FlagRules returns what the tenant demands of changes to its flags. The caller must not change them.
func (t *Tenant) FlagRules() events.FlagRules { return t.state.Load().FlagRules }

// HasEvaluationKey reports whether the tenant has a key with this id.
func (t *Tenant) HasEvaluationKey(id string) bool {
	_, ok := t.state.Load().EvaluationKeys[id]
	return ok
}

// Role returns the role of a member, and false for a person who is not a member.
func (t *Tenant) Role(userID string) (events.Role, bool) {
	m, ok := t.members.Load(userID)
	return m.Role, ok
}

// JoinedAt returns when an added or invited person became a member; zero for other members and for non-members.
func (t *Tenant) JoinedAt(userID string) time.Time {
	m, _ := t.members.Load(userID)
	return m.JoinedAt
}

// Admins returns the ids of the tenant's admins, in no order.
func (t *Tenant) Admins() (ids []string) {
	t.members.Range(func(id string, m member) bool {
		if m.Role == events.AdminRole {
			ids = append(ids, id)
		}
		return true
	})
	return ids
}

// Flag finds a flag by its key.
func (t *Tenant) Flag(key string) (*Flag, bool) { return t.flags.Load(key) }

// FlagKeys returns the sorted keys of the tenant's flags. The caller must not change them.
func (t *Tenant) FlagKeys() []string {
	generation := t.keysGeneration.Load()
	if last := t.keys.Load(); last != nil && last.generation == generation {
		return last.keys
	}
	keys := make([]string, 0, t.flags.Size())
	t.flags.Range(func(key string, _ *Flag) bool {
		keys = append(keys, key)
		return true
	})
	slices.Sort(keys)
	t.keys.Store(&flagKeys{generation, keys})
	return keys
}

// FlagsChanged returns the position of the last change of the tenant's flags, segments or environments, or a later one.
func (t *Tenant) FlagsChanged() events.Position {
	if position := t.flagsChanged.Load(); position != nil {
		return *position
	}
	return events.Position{}
}

// Size counts the tenant's flags and members, without pending members.
func (t *Tenant) Size() (flags, members int) { return t.flags.Size(), t.members.Size() }

// FlagBytes is how many bytes the tenant's flags and segments have together: see state.Flag.Bytes.
func (t *Tenant) FlagBytes() int { return int(t.flagBytes.Load()) }

// Projects counts the tenant's projects.
func (t *Tenant) Projects() int { return t.projects.Size() }

// FlagsIn lists the keys of a tenant's flags in a project, which need not exist.
func (s *Snapshot) FlagsIn(tenantID, projectID string) (keys []string) {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return nil
	}
	t.flags.Range(func(key string, f *Flag) bool {
		if f.State().ProjectID == projectID {
			keys = append(keys, key)
		}
		return true
	})
	return keys
}

// ProjectFlags counts the flags of a project. It returns false if the tenant has no such project.
func (t *Tenant) ProjectFlags(projectID string) (int, bool) {
	p, ok := t.projects.Load(projectID)
	if !ok {
		return 0, false
	}
	return int(p.flags.Load()), true
}
