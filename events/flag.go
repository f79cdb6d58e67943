package events

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

const flagStreams = "flag-"

// FlagStream returns the name of a flag's stream. It holds the key, so the store itself keeps keys unique in a tenant.
func FlagStream(tenantID, key string) string { return flagStreams + tenantID + "." + key }

// ParseFlagStream is the reverse of FlagStream. For the name of any other stream it returns empty strings.
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

// FlagStatus is the status of a flag in all environments. Whether it is enabled in one of them is separate.
type FlagStatus string

// The flag statuses.
const (
	ActiveFlag   FlagStatus = "active"
	InactiveFlag FlagStatus = "inactive"
	ArchivedFlag FlagStatus = "archived"
)

// OffServes says what OFREP answers while a flag is off: OffServesValue or OffServesCode.
type OffServes string

// What OFREP answers while a flag is off.
const (
	OffServesValue OffServes = ""     // the default value of the flag
	OffServesCode  OffServes = "code" // no value, so that the application's code decides
)

// offServesValue is the text of OffServesValue, which facts leave out.
const offServesValue = "value"

// ParseOffServes reads what Text returns.
func ParseOffServes(text string) (serves OffServes, ok bool) {
	switch text {
	case offServesValue:
		return OffServesValue, true
	case string(OffServesCode):
		return OffServesCode, true
	}
	return "", false
}

// Text returns the value as people write it, value or code.
func (o OffServes) Text() string {
	if o == OffServesValue {
		return offServesValue
	}
	return string(o)
}

// FlagFact is a fact of a flag's stream.
//
//sumtype:decl
type FlagFact interface {
	Fact
	flagFact()
}

// FlagCreated creates a flag. When a flag is deleted its key is free: the next flag with that key has its own
// FlagCreated in the same stream.
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
	Permanent    bool            `json:"permanent,omitempty"`  // meant to stay, such as a kill switch
	ClientSide   bool            `json:"clientSide,omitempty"` // browsers with an evaluation key may evaluate it
	Owner        string          `json:"owner,omitempty"`      // the id of a person, who may have left since
	Links        []Link          `json:"links,omitempty"`
	OffServes    OffServes       `json:"offServes,omitempty"`
	Salt         string          `json:"salt"` // for the split by weight; never changes
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

// Link leads from a flag to a page about it.
type Link struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// FlagUpdated changes fields of a flag.
type FlagUpdated struct {
	Name         *Change[string]          `json:"name,omitempty"`
	DefaultValue *Change[json.RawMessage] `json:"defaultValue,omitempty"`
	Description  *Change[string]          `json:"description,omitempty"`
	Tags         *Change[[]string]        `json:"tags,omitempty"`
	ProjectID    *Change[string]          `json:"projectId,omitempty"` // empty for no project
	Permanent    *Change[bool]            `json:"permanent,omitempty"`
	ClientSide   *Change[bool]            `json:"clientSide,omitempty"`
	Owner        *Change[string]          `json:"owner,omitempty"` // empty for no owner
	Links        *Change[[]Link]          `json:"links,omitempty"`
	OffServes    *Change[OffServes]       `json:"offServes,omitempty"`
}

// FlagStatusChanged changes the status of a flag.
type FlagStatusChanged struct {
	From FlagStatus `json:"from"`
	To   FlagStatus `json:"to"`
}

// FlagEnabled turns a flag on in one environment.
type FlagEnabled struct {
	Environment EnvironmentRef `json:"environment"`
}

// FlagDisabled turns a flag off in one environment.
type FlagDisabled struct {
	Environment EnvironmentRef `json:"environment"`
}

// VariationAdded adds a variation after the others.
type VariationAdded struct {
	Variation Variation `json:"variation"`
}

// VariationUpdated changes fields of a variation, which keeps its place.
type VariationUpdated struct {
	ID          string                   `json:"id"`
	Name        *Change[string]          `json:"name,omitempty"`
	Value       *Change[json.RawMessage] `json:"value,omitempty"`
	Description *Change[string]          `json:"description,omitempty"`
	Weight      *Change[Weight]          `json:"weight,omitempty"`
}

// VariationRemoved removes a variation. It holds the whole variation, so that the history can show it.
type VariationRemoved struct {
	Variation Variation `json:"variation"`
}

// FlagDeleted deletes a flag. Its key is free again.
type FlagDeleted struct{}

// FlagReverted ends a revert: the other facts of the same append come before it.
type FlagReverted struct {
	Version     Revision        `json:"version"`               // the version that was restored
	At          time.Time       `json:"at,omitzero"`           // the requested time; zero if a version was requested
	Environment *EnvironmentRef `json:"environment,omitempty"` // the only reverted one; nil for the whole flag
	// Variations are all ids in their new order, if it changed.
	Variations *Change[[]string] `json:"variations,omitempty"`
}

// OrderVariations returns variations in an order; those that it does not name come last.
func OrderVariations[T any](variations []T, order []string, id func(T) string) []T {
	place := make(map[string]int, len(order))
	for i, id := range order {
		place[id] = i - len(order)
	}
	ordered := slices.Clone(variations)
	slices.SortStableFunc(ordered, func(a, b T) int { return cmp.Compare(place[id(a)], place[id(b)]) })
	return ordered
}

func (FlagCreated) StoredName() string       { return "flag.created" }
func (FlagUpdated) StoredName() string       { return "flag.updated" }
func (FlagStatusChanged) StoredName() string { return "flag.status_changed" }
func (FlagEnabled) StoredName() string       { return "flag.enabled" }
func (FlagDisabled) StoredName() string      { return "flag.disabled" }
func (VariationAdded) StoredName() string    { return "flag.variation_added" }
func (VariationUpdated) StoredName() string  { return "flag.variation_updated" }
func (VariationRemoved) StoredName() string  { return "flag.variation_removed" }
func (FlagDeleted) StoredName() string       { return "flag.deleted" }
func (FlagReverted) StoredName() string      { return "flag.reverted" }

func (FlagCreated) flagFact()       {}
func (FlagUpdated) flagFact()       {}
func (FlagStatusChanged) flagFact() {}
func (FlagEnabled) flagFact()       {}
func (FlagDisabled) flagFact()      {}
func (VariationAdded) flagFact()    {}
func (VariationUpdated) flagFact()  {}
func (VariationRemoved) flagFact()  {}
func (FlagDeleted) flagFact()       {}
func (FlagReverted) flagFact()      {}
