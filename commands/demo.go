package commands

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/state"
)

// Demo data of a new sandbox. Salts and ids, except of flags, are derived from the tenant's id, so that restored
// data are the same.

//go:embed demo.json
var demoJSON []byte

type demoData struct {
	Projects []DemoProject
	People   []demoPerson
	Flags    []DemoFlag
}

// DemoProject is a project of the demo data.
type DemoProject struct{ Name, Description, Color string }

type demoPerson struct {
	Name      string
	LocalPart string // of the address
	Role      events.Role
}

// DemoFlag is a flag of the demo data.
type DemoFlag struct {
	Key, Name, Description string
	Type                   events.FlagType
	Status                 events.FlagStatus // empty means active
	DefaultValue           json.RawMessage
	Tags                   []string
	Project                string // its name, or empty
	Variations             []demoVariation
	Environments           map[string]demoEnvironment // by name
}

type demoVariation struct {
	Name, Description string
	Value             json.RawMessage
	Weight            events.Weight
}

type demoEnvironment struct {
	Enabled     bool
	Rules       []demoRule
	Fallthrough *demoServe
}

type demoRule struct {
	Name       string
	Conditions []events.Condition
	Serve      demoServe
}

// demoServe is a NewServe with names of variations instead of ids.
type demoServe struct {
	Variation string
	Value     json.RawMessage
	Rollout   []struct {
		Variation string
		Weight    events.Weight
	}
	BucketBy *string
}

// Demo returns the demo data of sandboxes.
var Demo = sync.OnceValue(func() (d demoData) {
	if err := json.Unmarshal(demoJSON, &d); err != nil {
		panic(err) // it is part of the program
	}
	return d
})

var demoIDs = uuid.MustParse("0c9f1e0a-6a5b-5a35-8f0e-2c7b7a9d4e61")

// demoID returns the id of a thing in a tenant's demo data.
func demoID(tenantID string, name ...string) string {
	return uuid.NewSHA1(demoIDs, []byte(tenantID+"\x00"+strings.Join(name, "\x00"))).String()
}

// DemoPerson is a person in the demo data of a sandbox, without an account.
type DemoPerson struct {
	UserID string
	Email  string
	Name   string
	Role   events.Role
}

// DemoPeople returns the demo people of a sandbox.
func DemoPeople(tenantID string) []DemoPerson {
	people := make([]DemoPerson, len(Demo().People))
	for i, p := range Demo().People {
		id := demoID(tenantID, "person", p.LocalPart)
		people[i] = DemoPerson{UserID: id, Email: p.LocalPart + "." + id[:8] + "@example.com", Name: p.Name, Role: p.Role}
	}
	return people
}

// DemoPeopleIDs returns the ids of the demo people of a sandbox.
func DemoPeopleIDs(tenantID string) []string {
	ids := make([]string, len(Demo().People))
	for i, p := range Demo().People {
		ids[i] = demoID(tenantID, "person", p.LocalPart)
	}
	return ids
}

// isDemoPerson reports whether a person belongs to the demo data of a tenant.
func isDemoPerson(tenantID, userID string) bool {
	return slices.Contains(DemoPeopleIDs(tenantID), userID)
}

// DemoFlags returns the keys of the demo flags of a sandbox.
func DemoFlags() []string {
	keys := make([]string, len(Demo().Flags))
	for i, f := range Demo().Flags {
		keys[i] = f.Key
	}
	return keys
}

// DemoProjects returns the ids of the demo projects of a sandbox.
func DemoProjects(tenantID string) []string {
	ids := make([]string, len(Demo().Projects))
	for i, p := range Demo().Projects {
		ids[i] = demoID(tenantID, "project", p.Name)
	}
	return ids
}

// DemoReset selects the demo data to restore.
type DemoReset struct {
	OnlyMissing bool // add only what the sandbox never had
	// Asked is when the cleanup was requested: later changes stay. It is zero if OnlyMissing is set.
	Asked time.Time
}

// ResetDemoPeople restores the first environments and the demo people of a sandbox.
type ResetDemoPeople struct {
	TenantRef
	DemoReset
	Environments []events.EnvironmentRef // with new ids, for missing ones
}

func (c ResetDemoPeople) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admitSandbox(t); err != nil {
		return nil, err
	}
	if !c.OnlyMissing && t.Subscription.KeepsSandbox() {
		return nil, Refuse(Conflict,
			"a sandbox is not cleaned up while it has a subscription or another plan; it has the plan %s", t.Subscription.Plan)
	}
	var facts []events.Fact
	named := func(name string) bool {
		return slices.ContainsFunc(c.Environments, func(e events.EnvironmentRef) bool { return e.Name == name })
	}
	if !c.OnlyMissing {
		for _, e := range t.Environments {
			if !named(e.Name) && !c.later(t, e.Name) {
				facts = append(facts, events.EnvironmentDeleted{Environment: e})
			}
		}
		for _, e := range c.Environments {
			if t.Environment(e.Name) == nil && !c.later(t, e.Name) {
				facts = append(facts, events.EnvironmentAdded{Environment: e})
			}
		}
		if !c.later(t, "") {
			facts = append(facts, c.arrange(t, facts)...)
		}
	}
	for _, p := range DemoPeople(c.TenantID) {
		if !c.OnlyMissing && c.later(t, p.UserID) {
			continue
		}
		m, member := t.Members[p.UserID]
		switch {
		case member && m.Role != p.Role && !c.OnlyMissing:
			facts = append(facts, events.MemberRoleChanged{UserID: p.UserID, From: m.Role, To: p.Role})
		case !member && (!c.OnlyMissing || !t.FormerMembers[p.UserID]):
			facts = append(facts, events.MemberAdded{UserID: p.UserID, Role: p.Role})
		}
	}
	return facts, nil
}

// arrange returns the fact that undoes an arrangement, if there was one. changes are the facts before it.
func (c ResetDemoPeople) arrange(t state.Tenant, changes []events.Fact) []events.Fact {
	if len(t.Colors) == 0 {
		return nil
	}
	t = t.Clone()
	for _, fact := range changes {
		t.Apply(events.Recorded{Event: events.Event{Fact: fact}})
	}
	from := t.Arrangement()
	t.Colors = nil
	place := func(e events.ArrangedEnvironment) int {
		return slices.IndexFunc(c.Environments, func(o events.EnvironmentRef) bool { return o.Name == e.Environment.Name })
	}
	to := slices.SortedStableFunc(slices.Values(t.Arrangement()), func(a, b events.ArrangedEnvironment) int {
		return cmp.Compare(uint(place(a)), uint(place(b))) // others are last
	})
	return arrange(from, to)
}

// later reports whether an environment or a member was changed after the cleanup was requested. The empty name is that
// of the arrangement.
func (c ResetDemoPeople) later(t state.Tenant, name string) bool {
	return t.ChangedAt[name].After(c.Asked)
}

// CleanUpFlag deletes a flag that has not changed since a time.
type CleanUpFlag struct {
	FlagRef
	Asked time.Time
}

func (c CleanUpFlag) Decide(f state.Flag) ([]events.Fact, error) {
	if !f.Exists || f.ChangedAt.After(c.Asked) {
		return nil, nil
	}
	return DeleteFlag{FlagRef: c.FlagRef}.Decide(f)
}

// CleanUpProject deletes a project that has not changed since a time.
type CleanUpProject struct {
	ProjectRef
	Asked time.Time
}

func (c CleanUpProject) Decide(p state.Project) ([]events.Fact, error) {
	if !p.Exists || p.ChangedAt.After(c.Asked) {
		return nil, nil
	}
	return DeleteProject{ProjectRef: c.ProjectRef}.Decide(p)
}

// admitSandbox refuses a tenant that is not a sandbox.
func (r TenantRef) admitSandbox(t state.Tenant) error {
	if err := r.admit(t); err != nil {
		return err
	}
	if !t.Sandbox {
		return Refuse(Conflict, "the tenant is not a sandbox")
	}
	return nil
}

// ResetDemoProject restores a demo project.
type ResetDemoProject struct {
	DemoReset
	TenantID string
	Name     string
}

func (c ResetDemoProject) Stream() string {
	return events.ProjectStream(demoID(c.TenantID, "project", c.Name))
}

func (c ResetDemoProject) Tenant() string { return c.TenantID }

func (c ResetDemoProject) Decide(p state.Project) ([]events.Fact, error) {
	i := slices.IndexFunc(Demo().Projects, func(d DemoProject) bool { return d.Name == c.Name })
	if i < 0 {
		return nil, Refuse(NotFound, "there is no demo project %q", c.Name)
	}
	d := Demo().Projects[i]
	fresh := events.ProjectCreated{
		ID: demoID(c.TenantID, "project", c.Name), TenantID: c.TenantID,
		Name: d.Name, Description: d.Description, Color: d.Color,
	}
	switch {
	case c.OnlyMissing && !p.ChangedAt.IsZero(), !c.OnlyMissing && p.ChangedAt.After(c.Asked):
		return nil, nil
	case p.Exists:
		return projectChanges(p.ProjectCreated, fresh), nil
	default:
		return []events.Fact{fresh}, nil
	}
}

// ResetDemoFlag restores a demo flag. A changed one is deleted and created again with the same variations, rules and
// salts.
type ResetDemoFlag struct {
	DemoReset
	TenantID     string
	Key          string
	ID           string                  // new
	Environments []events.EnvironmentRef // of the tenant
}

func (c ResetDemoFlag) Stream() string { return events.FlagStream(c.TenantID, c.Key) }

func (c ResetDemoFlag) Tenant() string { return c.TenantID }

func (c ResetDemoFlag) Decide(f state.Flag) ([]events.Fact, error) {
	i := slices.IndexFunc(Demo().Flags, func(d DemoFlag) bool { return d.Key == c.Key })
	if i < 0 {
		return nil, Refuse(NotFound, "there is no demo flag %q", c.Key)
	}
	if c.OnlyMissing && f.Version > 0 || !c.OnlyMissing && f.ChangedAt.After(c.Asked) {
		return nil, nil
	}
	facts, fresh, err := c.fresh(Demo().Flags[i])
	if err != nil || f.Exists && sameDemoFlag(f, fresh, c.Environments) {
		return nil, err
	}
	if f.Exists {
		facts = slices.Insert(facts, 0, events.Fact(events.FlagDeleted{}))
	}
	return facts, nil
}

// fresh builds the flag with ordinary commands, and returns their facts and the resulting flag.
func (c ResetDemoFlag) fresh(d DemoFlag) (facts []events.Fact, f state.Flag, err error) {
	do := func(cmd Command[state.Flag]) {
		var more []events.Fact
		if err == nil {
			more, err = cmd.Decide(f)
		}
		for _, fact := range more {
			f.Apply(events.Recorded{Event: events.Event{Fact: fact}})
		}
		facts = append(facts, more...)
	}
	create := CreateFlag{
		TenantID:     c.TenantID,
		Key:          d.Key,
		ID:           c.ID,
		Name:         &d.Name,
		Type:         d.Type,
		DefaultValue: d.DefaultValue,
		Description:  d.Description,
		Tags:         d.Tags,
		Salt:         demoID(c.TenantID, "flag", d.Key),
	}
	if d.Project != "" {
		create.ProjectID = demoID(c.TenantID, "project", d.Project)
	}
	for _, v := range d.Variations {
		create.Variations = append(create.Variations,
			NewVariation{ID: c.variation(v.Name), Name: v.Name, Value: v.Value, Description: v.Description, Weight: v.Weight})
	}
	do(create)
	ref := FlagRef{TenantID: c.TenantID, Key: c.Key}
	for _, e := range c.Environments {
		in, ok := d.Environments[e.Name]
		if !ok {
			continue
		}
		if len(in.Rules) > 0 {
			do(SetRules{FlagRef: ref, Environment: e, Rules: c.rules(e.Name, in.Rules)})
		}
		if in.Fallthrough != nil {
			do(SetFallthrough{FlagRef: ref, Environment: e, Serve: c.serve(*in.Fallthrough)})
		}
		if in.Enabled {
			do(SwitchFlag{FlagRef: ref, Environment: e, On: true})
		}
	}
	if d.Status != "" {
		do(UpdateFlag{FlagRef: ref, Status: &d.Status})
	}
	return facts, f, err
}

func (c ResetDemoFlag) variation(name string) string {
	return demoID(c.TenantID, "flag", c.Key, "variation", name)
}

func (c ResetDemoFlag) rules(environment string, list []demoRule) []NewRule {
	rules := make([]NewRule, len(list))
	for i, r := range list {
		id := demoID(c.TenantID, "flag", c.Key, "rule", environment, r.Name)
		rules[i] = NewRule{NewID: id, Salt: id, Name: r.Name, Conditions: r.Conditions, Serve: c.serve(r.Serve)}
	}
	return rules
}

func (c ResetDemoFlag) serve(s demoServe) *NewServe {
	serve := &NewServe{Value: s.Value, BucketBy: s.BucketBy}
	if s.Variation != "" {
		serve.VariationID = new(c.variation(s.Variation))
	}
	for _, share := range s.Rollout {
		serve.Rollout = append(serve.Rollout, events.Share{VariationID: c.variation(share.Variation), Weight: share.Weight})
	}
	return serve
}

// sameDemoFlag reports whether two flags are equal except for id, version and times.
func sameDemoFlag(f, other state.Flag, environments []events.EnvironmentRef) bool {
	f.ID = other.ID
	same := events.StoredEqual(f.FlagCreated, other.FlagCreated) && f.Status == other.Status
	for _, e := range environments {
		same = same && f.Enabled.Has(e.ID) == other.Enabled.Has(e.ID) &&
			events.StoredEqual(f.Rules[e.ID], other.Rules[e.ID]) &&
			events.StoredEqual(f.FallthroughIn(e.ID), other.FallthroughIn(e.ID)) &&
			events.StoredEqual(f.PrerequisitesIn(e.ID), other.PrerequisitesIn(e.ID))
	}
	return same
}
