package events

// TenantStream names the stream of a tenant.
func TenantStream(id string) string { return "tenant-" + id }

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

// MemberAdded makes a person a member of a tenant.
type MemberAdded struct {
	UserID string `json:"userId"`
	Role   Role   `json:"role"`
}

func (TenantCreated) StoredName() string    { return "tenant.created" }
func (EnvironmentAdded) StoredName() string { return "tenant.environment_added" }
func (MemberAdded) StoredName() string      { return "tenant.member_added" }

func (TenantCreated) tenantFact()    {}
func (EnvironmentAdded) tenantFact() {}
func (MemberAdded) tenantFact()      {}
