package commands

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"flagledger/events"
)

// Tenant is the state of a tenant's stream.
type Tenant struct {
	events.TenantCreated
	Exists        bool // false for a deleted tenant
	Environments  []events.EnvironmentRef
	Clients       map[string]OAuthClient // by id
	Members       map[string]Member      // by user id; pending ones by their own id
	Subscription  events.Subscription
	CreatedAt     time.Time
	added         environmentsAdded
	customers     int                  // how often the customer at the payment provider changed
	taken         bool                 // the id was used, even by a deleted tenant
	formerMembers map[string]bool      // ids of former members and former pending members
	leavers       map[string]bool      // ids of people who left and have not accepted an invitation since
	changedAt     map[string]time.Time // of a sandbox: environments by name, members by id, also removed ones
}

// environmentsAdded counts the environments added on a day, including deleted ones.
type environmentsAdded struct {
	day   time.Time // its beginning, in UTC
	count int
}

func (a *environmentsAdded) note(at time.Time) {
	if day := dayOf(at); !day.Equal(a.day) {
		*a = environmentsAdded{day: day}
	}
	a.count++
}

// Member is a person's membership in a tenant.
type Member struct {
	Role       events.Role
	Pending    bool      // not signed in yet
	MustAccept bool      // a pending member who joins only once they accept
	WasPending bool      // joined as a pending member: another person added or invited them
	InvitedBy  string    // the person who invited them as a pending member; empty for others
	CreatedAt  time.Time // when the store recorded that they joined, or that a pending member was invited
}

func (t *Tenant) evolve(r events.Recorded) {
	if t.Members == nil {
		t.Members, t.formerMembers, t.leavers = map[string]Member{}, map[string]bool{}, map[string]bool{}
	}
	switch fact := r.Fact.(events.TenantFact).(type) {
	case events.TenantCreated:
		*t = Tenant{
			TenantCreated: fact,
			Exists:        true,
			Members:       t.Members,
			Subscription:  fact.FirstSubscription(),
			CreatedAt:     r.At,
			taken:         true,
			formerMembers: t.formerMembers,
			leavers:       t.leavers,
		}
	case events.TenantUpdated:
		fact.Name.Apply(&t.Name)
	case events.TenantDeleted:
		t.Exists = false
	case events.EnvironmentAdded:
		t.noteChange(fact.Environment.Name, r.Time)
		t.added.note(r.Time)
		t.Environments = append(t.Environments, fact.Environment)
	case events.EnvironmentDeleted:
		t.noteChange(fact.Environment.Name, r.Time)
		t.Environments = slices.DeleteFunc(t.Environments,
			func(e events.EnvironmentRef) bool { return e.ID == fact.Environment.ID })
	case events.MemberAdded:
		t.noteChange(fact.UserID, r.Time)
		t.Members[fact.UserID] = Member{Role: fact.Role, CreatedAt: r.At}
	case events.MemberInvited:
		t.Members[fact.ID] = Member{
			Role: fact.Role, Pending: true, MustAccept: fact.MustAccept, InvitedBy: inviter(r.Actor), CreatedAt: r.At,
		}
	case events.MemberJoined:
		invitedBy := t.Members[fact.ID].InvitedBy
		delete(t.Members, fact.ID)
		t.formerMembers[fact.ID] = true
		delete(t.leavers, fact.UserID)
		if _, member := t.Members[fact.UserID]; !member {
			t.Members[fact.UserID] = Member{Role: fact.Role, WasPending: true, InvitedBy: invitedBy, CreatedAt: r.At}
		}
	case events.MemberRoleChanged:
		t.noteChange(fact.UserID, r.Time)
		m := t.Members[fact.UserID]
		m.Role = fact.To
		t.Members[fact.UserID] = m
	case events.MemberRemoved:
		t.noteChange(fact.UserID, r.Time)
		if r.Actor.Kind == events.UserActor && r.Actor.ID == fact.UserID {
			t.leavers[r.Actor.ID] = true
		}
		delete(t.Members, fact.UserID)
		t.formerMembers[fact.UserID] = true
	case events.SubscriptionChanged:
		if fact.To.CustomerID != t.Subscription.CustomerID {
			t.customers++
		}
		t.Subscription = fact.To
	case events.OAuthClientCreated, events.OAuthSecretRotated, events.OAuthClientDeleted:
		t.evolveClients(r)
	}
}

// noteChange records when an environment or a member of a sandbox was last changed; a cleanup compares it.
func (t *Tenant) noteChange(name string, at time.Time) {
	if !t.Sandbox {
		return
	}
	if t.changedAt == nil {
		t.changedAt = map[string]time.Time{}
	}
	t.changedAt[name] = at
}

// inviter returns the id of an actor who is a person.
func inviter(by events.Actor) string {
	if by.Kind != events.UserActor {
		return ""
	}
	return by.ID
}

func (t *Tenant) clone() Tenant {
	c := *t
	c.Environments = slices.Clone(t.Environments)
	c.Clients, c.Members, c.formerMembers = maps.Clone(t.Clients), maps.Clone(t.Members), maps.Clone(t.formerMembers)
	c.leavers, c.changedAt = maps.Clone(t.leavers), maps.Clone(t.changedAt)
	return c
}

func (t *Tenant) size() int {
	n := 1024 + len(t.Name) + 128*len(t.Environments) + 1024*len(t.Clients) + 192*len(t.Members) +
		96*(len(t.formerMembers)+len(t.leavers)+len(t.changedAt))
	for _, c := range t.Clients {
		n += 24 * len(c.previous)
	}
	return n
}

// CreateTenant creates a tenant with its first admin and its first environments.
type CreateTenant struct {
	ID   string // new
	Name string
	// SandboxEndsAt is the end of a sandbox; zero for other tenants.
	SandboxEndsAt time.Time
	Creator       string // the id of the person who becomes its admin
	Created       CreatedBefore
	Environments  []events.EnvironmentRef
}

func (c CreateTenant) stream() string { return events.TenantStream(c.ID) }

func (c CreateTenant) tenant() string { return c.ID }

func (c CreateTenant) decide(t Tenant) ([]events.Fact, error) {
	wrong := fields{}
	checkText(wrong, "name", c.Name, 1, maxName)
	if err := wrong.err(); err != nil {
		return nil, err
	}
	if t.taken {
		return nil, refuse(Conflict, "the tenant exists already")
	}
	if err := c.Created.check(); err != nil {
		return nil, err
	}
	plan := events.FreePlan
	if !c.SandboxEndsAt.IsZero() {
		plan = events.SandboxPlan
	}
	facts := []events.Fact{
		events.TenantCreated{
			ID:            c.ID,
			Name:          c.Name,
			Sandbox:       plan == events.SandboxPlan,
			Plan:          plan,
			SandboxEndsAt: c.SandboxEndsAt.UTC(),
		},
		events.MemberAdded{UserID: c.Creator, Role: events.AdminRole},
	}
	for _, e := range c.Environments {
		facts = append(facts, events.EnvironmentAdded{Environment: e})
	}
	return facts, nil
}

// FirstEnvironments returns the environments of a new tenant with new ids.
func FirstEnvironments() []events.EnvironmentRef {
	return []events.EnvironmentRef{
		{ID: NewID(), Name: events.DefaultEnvironment},
		{ID: NewID(), Name: "development"},
	}
}

// TenantRef identifies a tenant.
type TenantRef struct{ TenantID string }

func (r TenantRef) stream() string { return events.TenantStream(r.TenantID) }

func (r TenantRef) tenant() string { return r.TenantID }

// admit refuses a tenant that does not exist or was deleted.
func (r TenantRef) admit(t Tenant) error {
	if !t.Exists {
		return refuse(NotFound, "no tenant has the id %q", r.TenantID)
	}
	return nil
}

// UpdateTenant changes the sent fields of a tenant; nil leaves a field unchanged.
type UpdateTenant struct {
	TenantRef
	Name    *string
	Contact []events.ContactField // fields that change in the directory
}

func (c UpdateTenant) decide(t Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := fields{}
	if c.Name != nil {
		checkText(wrong, "name", *c.Name, 1, maxName)
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	name := changed(t.Name, c.Name, equal)
	if name == nil && len(c.Contact) == 0 {
		return nil, nil
	}
	return []events.Fact{events.TenantUpdated{Name: name, Contact: c.Contact}}, nil
}

// DeleteTenant deletes a tenant and everything in it.
type DeleteTenant struct{ TenantRef }

func (c DeleteTenant) decide(t Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	return []events.Fact{events.TenantDeleted{}}, nil
}

// Limits of a tenant's environments: at once, and added on a day in UTC including deleted ones. The daily limit
// protects flags' streams, which mention each environment in which the flag was ever on.
const (
	maxEnvironments    = 100
	maxEnvironmentsDay = 200
	maxEnvironmentName = 63
)

var environmentPattern = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9][a-z0-9-]{0,%d}$`, maxEnvironmentName-1))

// AddEnvironment adds an environment in which all flags are off.
type AddEnvironment struct {
	TenantRef
	Environment events.EnvironmentRef // with a new id
	Now         time.Time
}

func (c AddEnvironment) decide(t Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := fields{}
	wrong.check(c.Environment.Name != "", "environment", "is required")
	wrong.check(environmentPattern.MatchString(c.Environment.Name), "environment", "must match %s", environmentPattern)
	if err := wrong.err(); err != nil {
		return nil, err
	}
	if t.environment(c.Environment.Name) != nil {
		return nil, refuse(Conflict, "the tenant has an environment %q already", c.Environment.Name)
	}
	if len(t.Environments) >= maxEnvironments {
		return nil, refuse(Conflict, "a tenant has at most %d environments", maxEnvironments)
	}
	if t.added.count >= maxEnvironmentsDay && t.added.day.Equal(dayOf(c.Now)) {
		return nil, TooManyToday(maxEnvironmentsDay, c.Now,
			fmt.Sprintf("%d environments were added to the tenant today, the limit for a day", t.added.count))
	}
	return []events.Fact{events.EnvironmentAdded{Environment: c.Environment}}, nil
}

// DeleteEnvironment removes an environment with its flag states. Production cannot be removed.
type DeleteEnvironment struct {
	TenantRef
	Name string
}

func (c DeleteEnvironment) decide(t Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	environment := t.environment(c.Name)
	switch {
	case environment == nil:
		return nil, refuse(NotFound, "the tenant has no environment %q", c.Name)
	case c.Name == events.DefaultEnvironment:
		return nil, refuse(Conflict, "the environment %s cannot be deleted", events.DefaultEnvironment)
	}
	return []events.Fact{events.EnvironmentDeleted{Environment: *environment}}, nil
}

func (t *Tenant) environment(name string) *events.EnvironmentRef {
	for i := range t.Environments {
		if t.Environments[i].Name == name {
			return &t.Environments[i]
		}
	}
	return nil
}
