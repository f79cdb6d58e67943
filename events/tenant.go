package events

import (
	"cmp"
	"slices"
	"time"
)

const tenantStreams = "tenant-"

// TenantStream returns the name of a tenant's stream.
func TenantStream(id string) string { return tenantStreams + id }

// Role is what a member may do in a tenant.
type Role string

// The roles. Each includes the next one.
const (
	AdminRole     Role = "admin"
	DeveloperRole Role = "developer"
	ViewerRole    Role = "viewer"
)

// TenantFact is a fact of a tenant's stream.
//
//sumtype:decl
type TenantFact interface {
	Fact
	tenantFact()
}

// TenantCreated creates a tenant; its contact is in the directory. Version 1 had no plan, version 2 no end of a
// sandbox.
type TenantCreated struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Sandbox bool   `json:"sandbox"`
	Plan    Plan   `json:"plan"`
	// SandboxEndsAt is when a sandbox ends; see Subscription.SandboxEnd. It is zero for other tenants.
	SandboxEndsAt time.Time `json:"sandboxEndsAt,omitzero"`
}

// EnvironmentAdded adds an environment to a tenant.
type EnvironmentAdded struct {
	Environment EnvironmentRef `json:"environment"`
	Color       string         `json:"color,omitzero"` // empty: the environment's default
}

// FirstColor returns the color that the environment has until it is arranged.
func (f EnvironmentAdded) FirstColor() string { return cmp.Or(f.Color, f.Environment.DefaultColor()) }

// EnvironmentDeleted deletes an environment, and with it the state of all flags there. Its id is never used again.
type EnvironmentDeleted struct {
	Environment EnvironmentRef `json:"environment"`
}

// EnvironmentsArranged changes the order of a tenant's environments, and their colors. Both lists name all of them.
type EnvironmentsArranged struct {
	From []ArrangedEnvironment `json:"from"`
	To   []ArrangedEnvironment `json:"to"`
}

// ArrangedEnvironment is an environment in its place of the tenant's order.
type ArrangedEnvironment struct {
	Environment EnvironmentRef `json:"environment"`
	Color       string         `json:"color"`
}

// Order returns the environments in the new order.
func (f EnvironmentsArranged) Order() []EnvironmentRef {
	order := make([]EnvironmentRef, len(f.To))
	for i, e := range f.To {
		order[i] = e.Environment
	}
	return order
}

// TenantUpdated changes fields of a tenant. Contact names the changed contact fields, whose values are only in the
// directory; version 1 lacked it.
type TenantUpdated struct {
	Name    *Change[string] `json:"name,omitempty"`
	Contact []ContactField  `json:"contact,omitempty"`
}

// ContactField is a field of a tenant's contact.
type ContactField string

// The fields of a contact.
const (
	PrimaryEmail ContactField = "primaryEmail"
	ContactName  ContactField = "contactName"
)

// FlagRulesChanged changes what a tenant demands of changes to its flags.
type FlagRulesChanged struct {
	From FlagRules `json:"from"`
	To   FlagRules `json:"to"`
}

// FlagRules are what a tenant demands of changes to its flags.
type FlagRules struct {
	Naming        *FlagNaming      `json:"naming,omitempty"`        // of new flags; nil for any key
	RequireReason []EnvironmentRef `json:"requireReason,omitempty"` // a change in one of them needs a reason
	RequireOwner  bool             `json:"requireOwner,omitempty"`  // of new flags
}

// FlagNaming says what keys must look like.
type FlagNaming struct {
	Pattern string `json:"pattern"` // RE2; matches the whole key
	Example string `json:"example"`
	Hint    string `json:"hint"`
}

// WithoutEnvironment returns the rules without a deleted environment.
func (r FlagRules) WithoutEnvironment(id string) FlagRules {
	r.RequireReason = slices.DeleteFunc(slices.Clone(r.RequireReason), func(e EnvironmentRef) bool { return e.ID == id })
	if len(r.RequireReason) == 0 {
		r.RequireReason = nil
	}
	return r
}

// TenantDeleted deletes a tenant and everything in it.
type TenantDeleted struct{}

// MemberAdded makes a person a member of a tenant: its creator, or a demo person. Earlier releases also added invited
// people with an account.
type MemberAdded struct {
	UserID string `json:"userId"`
	Role   Role   `json:"role"`
}

// MemberInvited adds a pending member, who has not signed in since. The directory holds their address under ID.
type MemberInvited struct {
	ID   string `json:"id"`
	Role Role   `json:"role"`
	// MustAccept means that they join only once they accept, not already at sign-in.
	MustAccept bool `json:"mustAccept,omitempty"`
}

// MemberJoined records that a pending member signed in. From now on they are the member UserID.
type MemberJoined struct {
	ID     string `json:"id"` // of the pending member
	UserID string `json:"userId"`
	Role   Role   `json:"role"`
}

// MemberRoleChanged changes the role of a member, pending or not.
type MemberRoleChanged struct {
	UserID string `json:"userId"`
	From   Role   `json:"from"`
	To     Role   `json:"to"`
}

// MemberRemoved removes a member, pending or not.
type MemberRemoved struct {
	UserID string `json:"userId"`
}

func (TenantCreated) StoredName() string        { return "tenant.created" }
func (EnvironmentAdded) StoredName() string     { return "tenant.environment_added" }
func (EnvironmentDeleted) StoredName() string   { return "tenant.environment_deleted" }
func (EnvironmentsArranged) StoredName() string { return "tenant.environments_arranged" }
func (TenantUpdated) StoredName() string        { return "tenant.updated" }
func (FlagRulesChanged) StoredName() string     { return "tenant.flag_rules_changed" }
func (TenantDeleted) StoredName() string        { return "tenant.deleted" }
func (MemberAdded) StoredName() string          { return "tenant.member_added" }
func (MemberInvited) StoredName() string        { return "tenant.member_invited" }
func (MemberJoined) StoredName() string         { return "tenant.member_joined" }
func (MemberRoleChanged) StoredName() string    { return "tenant.member_role_changed" }
func (MemberRemoved) StoredName() string        { return "tenant.member_removed" }

func (TenantCreated) tenantFact()        {}
func (EnvironmentAdded) tenantFact()     {}
func (EnvironmentDeleted) tenantFact()   {}
func (EnvironmentsArranged) tenantFact() {}
func (TenantUpdated) tenantFact()        {}
func (FlagRulesChanged) tenantFact()     {}
func (TenantDeleted) tenantFact()        {}
func (MemberAdded) tenantFact()          {}
func (MemberInvited) tenantFact()        {}
func (MemberJoined) tenantFact()         {}
func (MemberRoleChanged) tenantFact()    {}
func (MemberRemoved) tenantFact()        {}
