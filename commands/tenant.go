package commands

import (
	"fmt"
	"regexp"
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

func (c AddEnvironment) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	wrong.Check(c.Environment.Name != "", "environment", "is required")
	wrong.Check(environmentPattern.MatchString(c.Environment.Name), "environment", "must match %s", environmentPattern)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if t.Environment(c.Environment.Name) != nil {
		return nil, Refuse(Conflict, "the tenant has an environment %q already", c.Environment.Name)
	}
	if len(t.Environments) >= maxEnvironments {
		return nil, Refuse(Conflict, "a tenant has at most %d environments", maxEnvironments)
	}
	if t.EnvironmentsToday >= maxEnvironmentsDay && t.EnvironmentsDay.Equal(DayOf(c.Now)) {
		return nil, TooManyToday(maxEnvironmentsDay, c.Now,
			fmt.Sprintf("%d environments were added to the tenant today, the limit for a day", t.EnvironmentsToday))
	}
	return []events.Fact{events.EnvironmentAdded{Environment: c.Environment}}, nil
}

// DeleteEnvironment removes an environment with its flag states. Production cannot be removed.
type DeleteEnvironment struct {
	TenantRef
	Name string
}

func (c DeleteEnvironment) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	environment := t.Environment(c.Name)
	switch {
	case environment == nil:
		return nil, Refuse(NotFound, "the tenant has no environment %q", c.Name)
	case c.Name == events.DefaultEnvironment:
		return nil, Refuse(Conflict, "the environment %s cannot be deleted", events.DefaultEnvironment)
	}
	return []events.Fact{events.EnvironmentDeleted{Environment: *environment}}, nil
}
