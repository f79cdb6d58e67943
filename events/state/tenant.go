package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"flagledger/events"
)

// Tenant is the state of a tenant's stream.
type Tenant struct {
	events.TenantCreated
	Exists       bool                    // false for a tenant that was deleted
	Taken        bool                    // a tenant has this id, or had it
	Environments []events.EnvironmentRef // in the tenant's order
	Colors       map[string]string       // of environments, by id; the others have their defaults
	Clients      map[string]OAuthClient  // by id
	// EvaluationKeys has the keys of all environments, by id.
	EvaluationKeys map[string]EvaluationKey
	Members        map[string]Member // by user id, pending ones by an id of their own
	Subscription   events.Subscription
	Customers      int // how often the customer at the payment provider has changed
	FlagRules      events.FlagRules
	CreatedAt      time.Time

	EnvironmentsDay   time.Time // the beginning of the day, in UTC, on which an environment was last added
	EnvironmentsToday int       // how many were added on that day, deleted ones included

	FormerMembers map[string]bool // ids of everyone who was a member or pending, and is not now
	Leavers       map[string]bool // ids of people who left by themselves and have not accepted an invitation since
	// ChangedAt says in a sandbox when each environment, by name, and each member, by id, last changed; deleted ones too.
	// Under the empty name it has the arrangement of environments.
	ChangedAt map[string]time.Time
}

// Member is a person's membership of a tenant.
type Member struct {
	Role       events.Role
	Pending    bool      // not signed in yet
	MustAccept bool      // a pending member who joins only once they accept
	WasPending bool      // joined as a pending member: another person added or invited them
	InvitedBy  string    // the id of the person who invited them as a pending member; empty for others
	CreatedAt  time.Time // when they joined, or were invited if they are pending
}

// Apply implements State.
func (t *Tenant) Apply(r events.Recorded) {
	if t.Members == nil {
		t.Members, t.FormerMembers, t.Leavers = map[string]Member{}, map[string]bool{}, map[string]bool{}
	}
	switch fact := r.Fact.(events.TenantFact).(type) {
	case events.TenantCreated:
		*t = Tenant{
			TenantCreated: fact,
			Exists:        true,
			Taken:         true,
			Members:       t.Members,
			Subscription:  fact.FirstSubscription(),
			CreatedAt:     r.At,
			FormerMembers: t.FormerMembers,
			Leavers:       t.Leavers,
		}
	case events.TenantUpdated:
		fact.Name.Apply(&t.Name)
	case events.FlagRulesChanged:
		t.FlagRules = fact.To
	case events.TenantDeleted:
		t.Exists = false
	case events.EnvironmentAdded:
		t.noteChange(fact.Environment.Name, r.Time)
		if day := r.Time.UTC().Truncate(24 * time.Hour); !day.Equal(t.EnvironmentsDay) {
			t.EnvironmentsDay, t.EnvironmentsToday = day, 0
		}
		t.EnvironmentsToday++
		t.Environments = append(t.Environments, fact.Environment)
		if fact.Color != "" {
			if t.Colors == nil {
				t.Colors = map[string]string{}
			}
			t.Colors[fact.Environment.ID] = fact.Color
		}
	case events.EnvironmentDeleted:
		t.noteChange(fact.Environment.Name, r.Time)
		t.Environments = slices.DeleteFunc(t.Environments,
			func(e events.EnvironmentRef) bool { return e.ID == fact.Environment.ID })
		delete(t.Colors, fact.Environment.ID)
		t.removeEvaluationKeys(fact.Environment.ID)
		t.FlagRules = t.FlagRules.WithoutEnvironment(fact.Environment.ID)
	case events.EnvironmentsArranged:
		t.noteChange("", r.Time)
		t.Environments, t.Colors = fact.Order(), map[string]string{}
		for _, e := range fact.To {
			t.Colors[e.Environment.ID] = e.Color
		}
	case events.MemberAdded:
		t.noteChange(fact.UserID, r.Time)
		t.Members[fact.UserID] = Member{Role: fact.Role, CreatedAt: r.At}
	case events.MemberInvited:
		m := Member{Role: fact.Role, Pending: true, MustAccept: fact.MustAccept, CreatedAt: r.At}
		if r.Actor.Kind == events.UserActor {
			m.InvitedBy = r.Actor.ID
		}
		t.Members[fact.ID] = m
	case events.MemberJoined:
		invitedBy := t.Members[fact.ID].InvitedBy
		delete(t.Members, fact.ID)
		t.FormerMembers[fact.ID] = true
		delete(t.Leavers, fact.UserID)
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
			t.Leavers[r.Actor.ID] = true
		}
		delete(t.Members, fact.UserID)
		t.FormerMembers[fact.UserID] = true
	case events.SubscriptionChanged:
		if fact.To.CustomerID != t.Subscription.CustomerID {
			t.Customers++
		}
		t.Subscription = fact.To
	case events.OAuthClientCreated, events.OAuthSecretRotated, events.OAuthClientDeleted:
		t.applyClient(r)
	case events.EvaluationKeyAdded, events.EvaluationKeyChanged, events.EvaluationKeyRotated, events.EvaluationKeyRemoved:
		t.applyEvaluationKey(r)
	}
}

// noteChange notes in a sandbox when an environment or a member last changed.
func (t *Tenant) noteChange(name string, at time.Time) {
	if !t.Sandbox {
		return
	}
	if t.ChangedAt == nil {
		t.ChangedAt = map[string]time.Time{}
	}
	t.ChangedAt[name] = at
}

// Environment returns the environment with a name, nil if the tenant has none.
func (t *Tenant) Environment(name string) *events.EnvironmentRef {
	for i := range t.Environments {
		if t.Environments[i].Name == name {
			return &t.Environments[i]
		}
	}
	return nil
}

// Arrangement returns the environments in the tenant's order, with their colors.
func (t *Tenant) Arrangement() []events.ArrangedEnvironment {
	list := make([]events.ArrangedEnvironment, len(t.Environments))
	for i, e := range t.Environments {
		list[i] = events.ArrangedEnvironment{Environment: e, Color: cmp.Or(t.Colors[e.ID], e.DefaultColor())}
	}
	return list
}

// Clone implements State.
func (t *Tenant) Clone() Tenant {
	c := *t
	c.Environments, c.Colors = slices.Clone(t.Environments), maps.Clone(t.Colors)
	c.Clients, c.Members, c.FormerMembers = maps.Clone(t.Clients), maps.Clone(t.Members), maps.Clone(t.FormerMembers)
	c.EvaluationKeys = maps.Clone(t.EvaluationKeys)
	c.Leavers, c.ChangedAt = maps.Clone(t.Leavers), maps.Clone(t.ChangedAt)
	return c
}

// Size implements State.
func (t *Tenant) Size() int {
	n := 1024 + len(t.Name) + 128*(len(t.Environments)+len(t.Colors)+len(t.FlagRules.RequireReason)) +
		1024*len(t.Clients) + 192*len(t.Members) +
		96*(len(t.FormerMembers)+len(t.Leavers)+len(t.ChangedAt))
	for _, c := range t.Clients {
		n += 24 * len(c.Previous)
	}
	for _, k := range t.EvaluationKeys {
		n += 512 + len(k.Name) + 192*len(k.Origins) + 192*len(k.Previous)
	}
	return n
}
