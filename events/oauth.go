package events

// Scope is what an OAuth client may do in its tenant.
type Scope string

// The scopes. None of them includes another.
const (
	FlagsRead     Scope = "flags:read"
	FlagsWrite    Scope = "flags:write"
	FlagsEvaluate Scope = "flags:evaluate"
	ProjectsRead  Scope = "projects:read"
	ProjectsWrite Scope = "projects:write"
)
