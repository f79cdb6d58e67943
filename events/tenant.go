package events

const tenantStreams = "tenant-"

// TenantStream names the stream of a tenant.
func TenantStream(id string) string { return tenantStreams + id }

// Role is what a member may do in a tenant.
type Role string

// The roles, each of which may do all that the next one may.
const (
	AdminRole     Role = "admin"
	DeveloperRole Role = "developer"
	ViewerRole    Role = "viewer"
)

// Plan is what a tenant subscribes to.
type Plan string

// The plans that a tenant starts on.
const (
	FreePlan    Plan = "free"
	SandboxPlan Plan = "sandbox"
)

// TenantFact is a fact of a tenant's stream.
//
//sumtype:decl
type TenantFact interface {
	Fact
	tenantFact()
}

// TenantCreated begins a tenant. Whom to write to about it is kept in the directory, not here. Version 1 left the plan to
// be inferred from Sandbox.
type TenantCreated struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Sandbox bool   `json:"sandbox"`
	Plan    Plan   `json:"plan"`
}

// EnvironmentAdded gives a tenant an environment.
type EnvironmentAdded struct {
	Environment EnvironmentRef `json:"environment"`
}

// EnvironmentDeleted takes an environment from a tenant, and with it what flags are in it. Its id is never used again.
type EnvironmentDeleted struct {
	Environment EnvironmentRef `json:"environment"`
}

// TenantUpdated changes what describes a tenant.
type TenantUpdated struct {
	Name *Change[string] `json:"name,omitempty"`
}

// TenantDeleted ends a tenant and all that is in it.
type TenantDeleted struct{}

// MemberAdded makes a person a member of a tenant.
type MemberAdded struct {
	UserID string `json:"userId"`
	Role   Role   `json:"role"`
}

// MemberInvited makes somebody a member who has no account yet. The address stands in the directory, under ID.
type MemberInvited struct {
	ID   string `json:"id"`
	Role Role   `json:"role"`
}

// MemberJoined says that a pending member signed in: from now on it is the person UserID.
type MemberJoined struct {
	ID     string `json:"id"` // of the pending member
	UserID string `json:"userId"`
	Role   Role   `json:"role"`
}

// MemberRoleChanged gives a member, pending or not, another role.
type MemberRoleChanged struct {
	UserID string `json:"userId"`
	From   Role   `json:"from"`
	To     Role   `json:"to"`
}

// MemberRemoved ends a membership, pending or not.
type MemberRemoved struct {
	UserID string `json:"userId"`
}

func (TenantCreated) StoredName() string      { return "tenant.created" }
func (EnvironmentAdded) StoredName() string   { return "tenant.environment_added" }
func (EnvironmentDeleted) StoredName() string { return "tenant.environment_deleted" }
func (TenantUpdated) StoredName() string      { return "tenant.updated" }
func (TenantDeleted) StoredName() string      { return "tenant.deleted" }
func (MemberAdded) StoredName() string        { return "tenant.member_added" }
func (MemberInvited) StoredName() string      { return "tenant.member_invited" }
func (MemberJoined) StoredName() string       { return "tenant.member_joined" }
func (MemberRoleChanged) StoredName() string  { return "tenant.member_role_changed" }
func (MemberRemoved) StoredName() string      { return "tenant.member_removed" }

func (TenantCreated) tenantFact()      {}
func (EnvironmentAdded) tenantFact()   {}
func (EnvironmentDeleted) tenantFact() {}
func (TenantUpdated) tenantFact()      {}
func (TenantDeleted) tenantFact()      {}
func (MemberAdded) tenantFact()        {}
func (MemberInvited) tenantFact()      {}
func (MemberJoined) tenantFact()       {}
func (MemberRoleChanged) tenantFact()  {}
func (MemberRemoved) tenantFact()      {}
