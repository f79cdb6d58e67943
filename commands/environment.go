package commands

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

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
	return []events.Fact{events.EnvironmentAdded{Environment: c.Environment, Color: distinctColor(t, c.Environment)}}, nil
}

// distinctColor returns a color that no environment of the tenant has, or an empty one if that is the default.
func distinctColor(t state.Tenant, e events.EnvironmentRef) string {
	used := map[string]bool{}
	for _, other := range t.Arrangement() {
		used[strings.ToLower(other.Color)] = true
	}
	color := e.DistinctColor(used)
	if color == e.DefaultColor() {
		return ""
	}
	return color
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

// ArrangeEnvironments sets the order of a tenant's environments, and their colors.
type ArrangeEnvironments struct {
	TenantRef
	Environments []EnvironmentSetting // each of the tenant's exactly once
}

// EnvironmentSetting is what an arrangement says of an environment.
type EnvironmentSetting struct {
	Name  string
	Color string
}

func (c ArrangeEnvironments) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	var to []events.ArrangedEnvironment
	missing := map[string]bool{}
	for _, e := range t.Environments {
		missing[e.Name] = true
	}
	wrong.Check(len(c.Environments) <= maxEnvironments, "environments", "must be %d at most", maxEnvironments)
	for i, e := range c.Environments[:min(len(c.Environments), maxEnvironments)] {
		field := "environments[" + strconv.Itoa(i) + "]"
		wrong.Check(colorPattern.MatchString(e.Color), field+".color", "must be a color of the form #rrggbb")
		environment := t.Environment(e.Name)
		if environment == nil {
			wrong.Check(false, field+".name", "the tenant has no environment %q", e.Name)
			continue
		}
		wrong.Check(missing[e.Name], field+".name", "the environment %q is named twice", e.Name)
		delete(missing, e.Name)
		to = append(to, events.ArrangedEnvironment{Environment: *environment, Color: e.Color})
	}
	wrong.Check(len(missing) == 0, "environments", "must name each environment of the tenant, and lacks %s",
		strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	return arrange(t.Arrangement(), to), nil
}

// arrange returns the fact of a new arrangement, none if it is the current one.
func arrange(from, to []events.ArrangedEnvironment) []events.Fact {
	if slices.Equal(from, to) {
		return nil
	}
	return []events.Fact{events.EnvironmentsArranged{From: from, To: to}}
}
