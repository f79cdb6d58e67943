package commands

import (
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

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

func (c CreateTenant) Stream() string { return events.TenantStream(c.ID) }

func (c CreateTenant) Tenant() string { return c.ID }

func (c CreateTenant) Decide(t state.Tenant) ([]events.Fact, error) {
	wrong := FieldErrors{}
	CheckText(wrong, "name", c.Name, 1, maxName)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if t.Taken {
		return nil, Refuse(Conflict, "the tenant exists already")
	}
	if err := c.Created.Check(); err != nil {
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

func (r TenantRef) Stream() string { return events.TenantStream(r.TenantID) }

func (r TenantRef) Tenant() string { return r.TenantID }

// admit refuses a tenant that does not exist or was deleted.
func (r TenantRef) admit(t state.Tenant) error {
	if !t.Exists {
		return Refuse(NotFound, "no tenant has the id %q", r.TenantID)
	}
	return nil
}

// UpdateTenant changes the sent fields of a tenant; nil leaves a field unchanged.
type UpdateTenant struct {
	TenantRef
	Name    *string
	Contact []events.ContactField // fields that change in the directory
}

func (c UpdateTenant) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	if c.Name != nil {
		CheckText(wrong, "name", *c.Name, 1, maxName)
	}
	if err := wrong.Err(); err != nil {
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

func (c DeleteTenant) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	return []events.Fact{events.TenantDeleted{}}, nil
}
