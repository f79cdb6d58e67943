package commands

import (
	"time"

	"flagledger/events"
)

// Tenant is the state of a tenant's stream.
type Tenant struct {
	events.TenantCreated
	Exists    bool
	CreatedAt time.Time
}

func (t *Tenant) evolve(r events.Recorded) {
	switch fact := r.Fact.(events.TenantFact).(type) {
	case events.TenantCreated:
		*t = Tenant{TenantCreated: fact, Exists: true, CreatedAt: r.Time}
	case events.EnvironmentAdded, events.MemberAdded:
	}
}

// CreateTenant begins a tenant with its first admin and its first environments.
type CreateTenant struct {
	ID           string // new
	Name         string
	Sandbox      bool
	Creator      string // the id of the person who becomes its admin
	Environments []events.EnvironmentRef
}

func (c CreateTenant) stream() string { return events.TenantStream(c.ID) }

// Check adds to what is found wrong with a request what is wrong with the command, and refuses it if anything is.
func (c CreateTenant) Check(found map[string]string) error {
	wrong := fields(found)
	checkText(wrong, "name", c.Name, 1, maxName)
	return wrong.err()
}

func (c CreateTenant) decide(t Tenant) ([]events.Fact, error) {
	if err := c.Check(map[string]string{}); err != nil {
		return nil, err
	}
	if t.Exists {
		return nil, refuse(Conflict, "the tenant exists already")
	}
	plan := events.FreePlan
	if c.Sandbox {
		plan = events.SandboxPlan
	}
	facts := []events.Fact{
		events.TenantCreated{ID: c.ID, Name: c.Name, Sandbox: c.Sandbox, Plan: plan},
		events.MemberAdded{UserID: c.Creator, Role: events.AdminRole},
	}
	for _, e := range c.Environments {
		facts = append(facts, events.EnvironmentAdded{Environment: e})
	}
	return facts, nil
}
