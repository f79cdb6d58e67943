package snapshot

import (
	"iter"
	"slices"
	"time"

	"flagledger/events"
)

// contents are all that a snapshot holds at a checkpoint, with what readers share: it is only read.
type contents struct {
	checkpoint events.LogPosition
	written    time.Time
	tenants    []savedTenant
	users      []savedUser
	clients    []*Client
	ended      []savedSession
}

type savedTenant struct {
	id       string
	state    tenantState
	members  []savedMember
	projects []savedProject
	clients  []string
	flags    []savedFlag
}

type savedMember struct {
	userID string
	member
}

type savedProject struct {
	id    string
	flags int64
}

type savedFlag struct {
	key  string
	flag *Flag
}

type savedUser struct {
	id string
	*User
}

type savedSession struct {
	session
	until time.Time
}

// copyContents may be called while Run runs: events wait for as long as it takes, some 0.1 s for a million flags. It
// returns nil where events have been left out: what they would have changed must be read again by the release that
// understands them.
func (s *Snapshot) copyContents() *contents {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.Faults() > 0 {
		return nil
	}
	all := &contents{
		checkpoint: events.LogPosition{Engine: s.engine, LogID: s.logID, Position: s.Position(), Last: s.last},
		written:    time.Now(),
	}
	s.tenants.Range(func(_ string, t *Tenant) bool {
		all.tenants = append(all.tenants, t.saved())
		return true
	})
	s.users.Range(func(id string, u *User) bool {
		all.users = append(all.users, savedUser{id, u})
		return true
	})
	s.clients.Range(func(_ string, c *Client) bool {
		all.clients = append(all.clients, c)
		return true
	})
	s.ended.Range(func(of session, until time.Time) bool {
		all.ended = append(all.ended, savedSession{of, until})
		return true
	})
	return all
}

func (t *Tenant) saved() savedTenant {
	saved := savedTenant{
		id:      t.id,
		state:   *t.state.Load(),
		clients: slices.Clone(t.clients),
		flags:   make([]savedFlag, 0, t.flags.Size()),
	}
	t.members.Range(func(id string, m member) bool {
		saved.members = append(saved.members, savedMember{id, m})
		return true
	})
	t.projects.Range(func(id string, p *project) bool {
		saved.projects = append(saved.projects, savedProject{id, p.flags.Load()})
		return true
	})
	t.flags.Range(func(key string, f *Flag) bool {
		saved.flags = append(saved.flags, savedFlag{key, f})
		return true
	})
	return saved
}

// The kinds of records. Each record stands for itself: they may be read in any order.
const (
	tenantRecord uint8 = iota
	flagsRecord
	usersRecord
	clientsRecord
	sessionsRecord
)

const perRecord = 100 // flags, users, clients or sessions

// records yields what writes each record.
func (all *contents) records() iter.Seq[func(*coder)] {
	return func(yield func(func(*coder)) bool) {
		for i := range all.tenants {
			t := &all.tenants[i]
			if !yield(func(c *coder) { c.record(tenantRecord); c.tenant(t) }) {
				return
			}
			for part := range slices.Chunk(t.flags, perRecord) {
				if !yield(func(c *coder) { c.record(flagsRecord); c.flags(&t.id, &part) }) {
					return
				}
			}
		}
		for part := range slices.Chunk(all.users, perRecord) {
			if !yield(func(c *coder) { c.record(usersRecord); codeList(c, &part, c.user) }) {
				return
			}
		}
		for part := range slices.Chunk(all.clients, perRecord) {
			if !yield(func(c *coder) { c.record(clientsRecord); codeList(c, &part, c.client) }) {
				return
			}
		}
		for part := range slices.Chunk(all.ended, perRecord) {
			if !yield(func(c *coder) { c.record(sessionsRecord); codeList(c, &part, c.session) }) {
				return
			}
		}
	}
}

func (c *coder) record(kind uint8) { codeNumber(c, &kind) }

// addRecord reads a record into a snapshot that nobody uses yet. Several may be read at once.
func (s *Snapshot) addRecord(c *coder) {
	var kind uint8
	codeNumber(c, &kind)
	switch kind {
	case tenantRecord:
		var saved savedTenant
		if c.tenant(&saved); !c.bad {
			s.addTenant(saved)
		}
	case flagsRecord:
		var tenantID string
		var flags []savedFlag
		if c.flags(&tenantID, &flags); !c.bad {
			t := s.addedTenant(tenantID)
			for _, f := range flags {
				t.flags.Store(f.key, f.flag)
				t.flagBytes.Add(int64(f.flag.bytes))
			}
		}
	case usersRecord:
		var users []savedUser
		if codeList(c, &users, c.user); !c.bad {
			for _, u := range users {
				s.users.Store(u.id, u.User)
			}
		}
	case clientsRecord:
		var clients []*Client
		if codeList(c, &clients, c.client); !c.bad {
			for _, client := range clients {
				s.clients.Store(client.ID, client)
			}
		}
	case sessionsRecord:
		var ended []savedSession
		if codeList(c, &ended, c.session); !c.bad {
			for _, e := range ended {
				s.ended.Store(e.session, e.until)
			}
		}
	default:
		c.fail()
	}
}

// addedTenant finds a tenant, or adds it. It may be called by several goroutines at once.
func (s *Snapshot) addedTenant(id string) *Tenant {
	t, _ := s.tenants.LoadOrCompute(id, func() (*Tenant, bool) { return newTenant(id, &s.uses), false })
	return t
}

func (s *Snapshot) addTenant(saved savedTenant) {
	t := s.addedTenant(saved.id)
	t.state.Store(&saved.state)
	t.clients = saved.clients
	for _, m := range saved.members {
		t.members.Store(m.userID, m.member)
	}
	for _, p := range saved.projects {
		added := &project{}
		added.flags.Store(p.flags)
		t.projects.Store(p.id, added)
	}
}

func (c *coder) checkpoint(v *events.LogPosition) {
	codeText(c, &v.Engine)
	codeText(c, &v.LogID)
	codeNumber(c, &v.Position.Commit)
	codeNumber(c, &v.Position.Prepare)
	codeText(c, &v.Last.Stream)
	codeNumber(c, &v.Last.Revision)
	codeText(c, &v.Last.ID)
}

func (c *coder) tenant(t *savedTenant) {
	codeText(c, &t.id)
	c.boolean(&t.state.exists)
	codeText(c, &t.state.name)
	codeText(c, &t.state.creator)
	c.boolean(&t.state.sandbox)
	c.instant(&t.state.sandboxEnd)
	codeJSON(c, &t.state.subscription)
	codeList(c, &t.state.environments, func(e *events.EnvironmentRef) {
		codeText(c, &e.ID)
		codeText(c, &e.Name)
	})
	codeList(c, &t.members, func(m *savedMember) {
		codeText(c, &m.userID)
		codeText(c, &m.role)
		c.instant(&m.joinedAt)
	})
	codeList(c, &t.projects, func(p *savedProject) {
		codeText(c, &p.id)
		codeNumber(c, &p.flags)
	})
	codeTexts(c, &t.clients)
}

func (c *coder) flags(tenantID *string, flags *[]savedFlag) {
	codeText(c, tenantID)
	codeList(c, flags, func(f *savedFlag) {
		codeText(c, &f.key)
		if !c.saving {
			f.flag = &Flag{}
		}
		c.flag(f.flag)
	})
}

func (c *coder) user(u *savedUser) {
	if !c.saving {
		u.User = &User{}
	}
	codeText(c, &u.id)
	c.boolean(&u.Registered)
	codeTexts(c, &u.Tenants)
	codeText(c, &u.PlatformRole)
	c.boolean(&u.Deactivated)
	c.boolean(&u.Erased)
	c.instant(&u.endedBefore)
	codeText(c, &u.endedExcept)
}

func (c *coder) client(v **Client) {
	if !c.saving {
		*v = &Client{}
	}
	client := *v
	codeText(c, &client.ID)
	codeText(c, &client.TenantID)
	codeTexts(c, &client.Scopes)
	codeList(c, &client.secrets, func(s *secret) {
		codeBytes(c, &s.hash)
		c.instant(&s.until)
	})
}

func (c *coder) session(v *savedSession) {
	codeText(c, &v.userID)
	codeText(c, &v.id)
	c.instant(&v.until)
}
