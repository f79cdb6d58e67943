package snapshot

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

// contents are all that a snapshot holds at a checkpoint, with what readers share: it is only read.
type contents struct {
	header
	tenants []savedTenant
	users   []savedUser
	clients []Client
	ended   []savedSession
	salts   []savedSalt
}

// header says what a file is of.
type header struct {
	Checkpoint events.LogPosition
	Written    time.Time
}

// record is a part of a file, in CBOR. Each stands for itself: they may be read in any order. One of its fields is set.
type record struct {
	Tenant  *savedTenant   `cbor:",omitempty"`
	Flags   *savedFlags    `cbor:",omitempty"`
	Segment *savedSegment  `cbor:",omitempty"`
	Users   []savedUser    `cbor:",omitempty"`
	Clients []Client       `cbor:",omitempty"`
	Ended   []savedSession `cbor:",omitempty"`
	Salts   []savedSalt    `cbor:",omitempty"`
}

type savedTenant struct {
	ID       string
	State    tenantState
	Members  map[string]member
	Projects map[string]int64 // how many flags each has
	Clients  []string

	flags    []*state.Flag // in records of their own; also deleted ones that others require
	segments []*state.Segment
}

// savedSegment is a segment as folded, with its members as lists.
type savedSegment struct {
	State              state.Segment
	Included, Excluded []string
}

func (s *savedSegment) state() *state.Segment {
	s.State.Included, s.State.Excluded = state.NewMembers(s.Included), state.NewMembers(s.Excluded)
	return &s.State
}

func saveSegment(s *state.Segment) *savedSegment {
	saved := &savedSegment{*s, s.Included.List(0, 0), s.Excluded.List(0, 0)}
	saved.State.Included, saved.State.Excluded, saved.State.Salt = state.Members{}, state.Members{}, nil
	saved.State.SaltMissing = false
	return saved
}

// savedFlags are flags of a tenant as folded, with the environments to compile them for.
type savedFlags struct {
	TenantID     string
	Environments []events.EnvironmentRef
	Flags        []*state.Flag
}

type savedUser struct {
	ID   string
	User User
}

// savedSalt is the salt of a private segment, as it is stored.
type savedSalt struct {
	ID        string
	Encrypted []byte
}

type savedSession struct {
	Session session
	Until   time.Time
}

// copyContents may be called while Run runs: events wait meanwhile, about 0.1 s for a million flags. It returns nil if
// events have been left out: a release that understands them must read them from the log.
func (s *Snapshot) copyContents() *contents {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.Faults() > 0 {
		return nil
	}
	all := &contents{header: header{
		Checkpoint: events.LogPosition{Engine: s.engine, LogID: s.logID, Position: s.Position(), Last: s.last},
		Written:    time.Now(),
	}}
	s.tenants.Range(func(_ string, t *Tenant) bool {
		all.tenants = append(all.tenants, t.saved())
		return true
	})
	s.users.Range(func(id string, u *User) bool {
		all.users = append(all.users, savedUser{id, *u})
		return true
	})
	s.clients.Range(func(_ string, c *Client) bool {
		all.clients = append(all.clients, *c)
		return true
	})
	s.ended.Range(func(of session, until time.Time) bool {
		all.ended = append(all.ended, savedSession{of, until})
		return true
	})
	s.salts.known.Range(func(id string, known salt) bool {
		all.salts = append(all.salts, savedSalt{id, known.encrypted})
		return true
	})
	return all
}

func (t *Tenant) saved() savedTenant {
	saved := savedTenant{
		ID:       t.id,
		State:    *t.state.Load(),
		Members:  map[string]member{},
		Projects: map[string]int64{},
		Clients:  slices.Clone(t.clients),
		flags:    make([]*state.Flag, 0, t.flags.Size()),
	}
	for id, m := range t.members.All() {
		saved.Members[id] = m
	}
	for id, p := range t.projects.All() {
		saved.Projects[id] = p.flags.Load()
	}
	for _, f := range t.flags.All() {
		saved.flags = append(saved.flags, f.State())
	}
	for _, required := range t.Dependencies().Required() {
		if !required.State().Exists {
			saved.flags = append(saved.flags, required.State())
		}
	}
	for _, segment := range t.Segments().All() {
		saved.segments = append(saved.segments, segment.State())
	}
	return saved
}

const perRecord = 100 // flags, users, clients or sessions

// records yields all but the header.
func (all *contents) records() iter.Seq[record] {
	return func(yield func(record) bool) {
		for i := range all.tenants {
			t := &all.tenants[i]
			if !yield(record{Tenant: t}) {
				return
			}
			for part := range slices.Chunk(t.flags, perRecord) {
				if !yield(record{Flags: &savedFlags{t.ID, t.State.Environments, part}}) {
					return
				}
			}
		}
		for i := range all.tenants {
			for _, segment := range all.tenants[i].segments {
				if !yield(record{Segment: saveSegment(segment)}) {
					return
				}
			}
		}
		for part := range slices.Chunk(all.users, perRecord) {
			if !yield(record{Users: part}) {
				return
			}
		}
		for part := range slices.Chunk(all.clients, perRecord) {
			if !yield(record{Clients: part}) {
				return
			}
		}
		for part := range slices.Chunk(all.ended, perRecord) {
			if !yield(record{Ended: part}) {
				return
			}
		}
		for part := range slices.Chunk(all.salts, perRecord) {
			if !yield(record{Salts: part}) {
				return
			}
		}
	}
}

// savedDependencies collects what the flags of tenants depend on, which is shown all at once in the end: each change of
// it costs what others refer to. Its maps are guarded by mu.
type savedDependencies struct {
	mu       sync.Mutex
	segments map[*Tenant][]*evaluation.Segment
	deleted  map[*Tenant][]*evaluation.Flag
}

// show shows what was collected, in a snapshot that is not in use yet.
func (d *savedDependencies) show() {
	for t, list := range d.segments {
		t.dependencies.Store(t.Dependencies().WithSegments(evaluation.NewSegments(list)))
	}
	for t, list := range d.deleted {
		t.dependencies.Store(t.Dependencies().WithRequired(list...))
	}
}

// add applies a record to a snapshot that is not in use yet. Concurrent calls are allowed. It returns the error of a
// flag that cannot be compiled.
func (s *Snapshot) add(r record, collected *savedDependencies) error {
	if r.Tenant != nil {
		s.addTenant(r.Tenant)
	}
	if r.Flags != nil {
		t := s.addedTenant(r.Flags.TenantID)
		for _, saved := range r.Flags.Flags {
			if saved == nil {
				return errDamaged
			}
			if !saved.Exists { // others require it
				collected.mu.Lock()
				collected.deleted[t] = append(collected.deleted[t], evaluation.Deleted(saved))
				collected.mu.Unlock()
				continue
			}
			f, err := newFlag(saved, r.Flags.Environments, nil)
			if err != nil {
				return err
			}
			t.flags.Store(saved.Key, f)
			t.dependents.add(saved.Key, f.dependencies())
			t.flagBytes.Add(int64(f.bytes))
		}
	}
	if r.Segment != nil {
		saved := r.Segment.state()
		if !saved.Exists { // earlier releases wrote all of it
			saved = deletedSegment(saved)
		}
		compiled, err := evaluation.CompileSegment(saved, nil)
		if err != nil {
			return err
		}
		t := s.addedTenant(saved.TenantID)
		collected.mu.Lock()
		collected.segments[t] = append(collected.segments[t], compiled)
		collected.mu.Unlock()
		t.flagBytes.Add(int64(saved.Bytes()))
	}
	for _, u := range r.Users {
		s.users.Store(u.ID, &u.User)
	}
	for _, client := range r.Clients {
		s.clients.Store(client.ID, &client)
	}
	for _, e := range r.Ended {
		s.ended.Store(e.Session, e.Until)
	}
	for _, e := range r.Salts {
		s.salts.known.Store(e.ID, salt{encrypted: e.Encrypted})
	}
	return nil
}

// addedTenant finds a tenant, or adds it. It may be called by several goroutines at once.
func (s *Snapshot) addedTenant(id string) *Tenant {
	t, _ := s.tenants.LoadOrCompute(id, func() (*Tenant, bool) { return newTenant(id), false })
	return t
}

func (s *Snapshot) addTenant(saved *savedTenant) {
	t := s.addedTenant(saved.ID)
	t.state.Store(&saved.State)
	t.clients = saved.Clients
	for id, m := range saved.Members {
		t.members.Store(id, m)
	}
	for id, flags := range saved.Projects {
		added := &project{}
		added.flags.Store(flags)
		t.projects.Store(id, added)
	}
}

// The modes of the encoding: times with nanoseconds, and lists of any length.
var (
	encoding = must(cbor.EncOptions{Time: cbor.TimeRFC3339NanoUTC}.EncMode())
	decoding = must(cbor.DecOptions{MaxArrayElements: 1 << 30, MaxMapPairs: 1 << 30}.DecMode())
)

func must[T any](mode T, err error) T {
	if err != nil {
		panic(err)
	}
	return mode
}
