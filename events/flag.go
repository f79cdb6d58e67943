package events

import (
	"encoding/json"
	"strings"
)

const flagStreams = "flag-"

// FlagStream names the stream of a flag: the key is unique in its tenant because the stream is.
func FlagStream(tenantID, key string) string { return flagStreams + tenantID + "." + key }

// ParseFlagStream takes a name that FlagStream made apart. Of any other it makes empty strings.
func ParseFlagStream(stream string) (tenantID, key string) {
	name, ok := strings.CutPrefix(stream, flagStreams)
	if !ok {
		return "", ""
	}
	tenantID, key, _ = strings.Cut(name, ".")
	return tenantID, key
}

// FlagType is the type of a flag's values.
type FlagType string

// The flag types.
const (
	BooleanFlag FlagType = "boolean"
	StringFlag  FlagType = "string"
	NumberFlag  FlagType = "number"
	JSONFlag    FlagType = "json"
)

// FlagStatus is the status of a whole flag, beside its being enabled in an environment.
type FlagStatus string

// The flag statuses.
const (
	ActiveFlag   FlagStatus = "active"
	InactiveFlag FlagStatus = "inactive"
	ArchivedFlag FlagStatus = "archived"
)

// FlagFact is a fact of a flag's stream.
//
//sumtype:decl
type FlagFact interface {
	Fact
	flagFact()
}

// FlagCreated begins a life of a flag. A stream has one for each time that its key was taken.
type FlagCreated struct {
	TenantID     string          `json:"tenantId"`
	Key          string          `json:"key"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Type         FlagType        `json:"type"`
	DefaultValue json.RawMessage `json:"defaultValue"`
	Description  string          `json:"description,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	ProjectID    string          `json:"projectId,omitempty"`
	Salt         string          `json:"salt"` // of its split by weight, for life
	Variations   []Variation     `json:"variations,omitempty"`
}

// Variation is one of the values that a flag can serve.
type Variation struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Value       json.RawMessage `json:"value"`
	Description string          `json:"description,omitempty"`
	Weight      Weight          `json:"weight"`
}

// FlagUpdated changes what describes a flag.
type FlagUpdated struct {
	Name         *Change[string]          `json:"name,omitempty"`
	DefaultValue *Change[json.RawMessage] `json:"defaultValue,omitempty"`
	Description  *Change[string]          `json:"description,omitempty"`
	Tags         *Change[[]string]        `json:"tags,omitempty"`
}

// FlagStatusChanged moves a flag from one status to another.
type FlagStatusChanged struct {
	From FlagStatus `json:"from"`
	To   FlagStatus `json:"to"`
}

// FlagEnabled switches a flag on in one environment.
type FlagEnabled struct {
	Environment EnvironmentRef `json:"environment"`
}

// FlagDisabled switches a flag off in one environment.
type FlagDisabled struct {
	Environment EnvironmentRef `json:"environment"`
}

// VariationAdded adds a variation after the others.
type VariationAdded struct {
	Variation Variation `json:"variation"`
}

// VariationUpdated changes a variation in its place.
type VariationUpdated struct {
	ID          string                   `json:"id"`
	Name        *Change[string]          `json:"name,omitempty"`
	Value       *Change[json.RawMessage] `json:"value,omitempty"`
	Description *Change[string]          `json:"description,omitempty"`
	Weight      *Change[Weight]          `json:"weight,omitempty"`
}

// VariationRemoved removes a variation; it is told whole, so that history can show it.
type VariationRemoved struct {
	Variation Variation `json:"variation"`
}

// FlagDeleted ends a life of a flag. Its key is free again.
type FlagDeleted struct{}

func (FlagCreated) StoredName() string       { return "flag.created" }
func (FlagUpdated) StoredName() string       { return "flag.updated" }
func (FlagStatusChanged) StoredName() string { return "flag.status_changed" }
func (FlagEnabled) StoredName() string       { return "flag.enabled" }
func (FlagDisabled) StoredName() string      { return "flag.disabled" }
func (VariationAdded) StoredName() string    { return "flag.variation_added" }
func (VariationUpdated) StoredName() string  { return "flag.variation_updated" }
func (VariationRemoved) StoredName() string  { return "flag.variation_removed" }
func (FlagDeleted) StoredName() string       { return "flag.deleted" }

func (FlagCreated) flagFact()       {}
func (FlagUpdated) flagFact()       {}
func (FlagStatusChanged) flagFact() {}
func (FlagEnabled) flagFact()       {}
func (FlagDisabled) flagFact()      {}
func (VariationAdded) flagFact()    {}
func (VariationUpdated) flagFact()  {}
func (VariationRemoved) flagFact()  {}
func (FlagDeleted) flagFact()       {}
