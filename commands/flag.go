package commands

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"flagledger/events"
	"flagledger/events/state"
)

// Limits of a flag.
const (
	maxName        = 200
	maxDescription = 2000
	maxTags        = 50
	maxTag         = 50
	maxFlagKey     = 128
	maxLinks       = 20
	maxLinkURL     = 2000
)

// MaxFlags limits the flags of a tenant, because every node holds all in memory. See Writer.Reserve for its precision.
const MaxFlags = 20_000

var keyPattern = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9._-]{0,%d}$`, maxFlagKey-1))

const (
	ownerMissing   = "must be the id of a member of the tenant"
	projectMissing = "no such project"
)

// reservedKeys are keys whose paths are operations, such as /flags/evaluate.
var reservedKeys = []string{"projects", "evaluate", "stream", "revert"}

// CreateFlag creates a flag. Its key must be free in the tenant.
type CreateFlag struct {
	TenantID     string
	Key          string
	ID           string // new
	Name         *string
	Type         events.FlagType
	DefaultValue json.RawMessage `json:",omitempty"` // nil: the zero value of the type
	Description  string
	Tags         []string
	ProjectID    string
	// ProjectMissing reports that the tenant has no such project. It may miss a concurrent deletion.
	ProjectMissing bool
	Permanent      bool
	ClientSide     bool
	Owner          string // empty for none
	// OwnerMissing reports that the owner is no member of the tenant. It may miss a concurrent departure.
	OwnerMissing bool
	Links        []events.Link
	OffServes    *string          // as events.ParseOffServes reads it; nil for its default
	Rules        events.FlagRules // of the tenant
	// FlagCount is the tenant's number of flags, from Writer.Reserve with MaxFlags.
	FlagCount  int
	Salt       string // new
	Variations []NewVariation
}

func (c CreateFlag) Stream() string { return events.FlagStream(c.TenantID, c.Key) }

func (c CreateFlag) Tenant() string { return c.TenantID }

func (c CreateFlag) Decide(f state.Flag) ([]events.Fact, error) {
	wrong := FieldErrors{}
	name := c.Key
	if c.Name != nil {
		name = *c.Name
		CheckText(wrong, "name", name, 1, maxName)
	}
	value := c.DefaultValue
	if value == nil {
		value = zeroValue(c.Type)
	}
	wrong.Check(c.Key != "", "key", "is required")
	wrong.Check(c.Type != "", "type", "is required")
	wrong.Check(keyPattern.MatchString(c.Key), "key", "must match %s", keyPattern)
	wrong.Check(!slices.Contains(reservedKeys, c.Key), "key", "%q is reserved", c.Key)
	c.checkFlagRules(wrong)
	wrong.Check(knownType(c.Type), "type", "must be one of boolean, string, number, json")
	CheckText(wrong, "description", c.Description, 0, maxDescription)
	checkTags(wrong, c.Tags)
	checkLinks(wrong, c.Links)
	offServes := checkOffServes(wrong, c.OffServes, events.OffServesValue)
	if knownType(c.Type) {
		checkValue(wrong, "defaultValue", c.Type, value)
	}
	wrong.Check(!c.ProjectMissing, "projectId", projectMissing)
	wrong.Check(!c.OwnerMissing, "owner", ownerMissing)
	wrong.Check(len(c.Variations) <= maxVariations, "flag_variations", "at most %d variations", maxVariations)
	created := events.FlagCreated{
		TenantID:     c.TenantID,
		Key:          c.Key,
		ID:           c.ID,
		Name:         name,
		Type:         c.Type,
		DefaultValue: compact(value),
		Description:  c.Description,
		Tags:         tagSet(c.Tags),
		ProjectID:    c.ProjectID,
		Permanent:    c.Permanent,
		ClientSide:   c.ClientSide,
		Owner:        c.Owner,
		Links:        c.Links,
		OffServes:    offServes,
		Salt:         c.Salt,
	}
	draft := state.Flag{FlagCreated: created}
	for i, v := range c.Variations[:min(len(c.Variations), maxVariations)] {
		checkVariation(&draft, wrong, "flag_variations["+strconv.Itoa(i)+"].", "", v)
		draft.Variations = append(draft.Variations, v.variation())
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if f.Exists {
		return nil, Refuse(Conflict, "a flag with the key %q exists already", c.Key)
	}
	if c.FlagCount >= MaxFlags {
		return nil, Refuse(Conflict, "the tenant has %d flags, which is the limit: delete one first", c.FlagCount)
	}
	created.Variations = draft.Variations
	return checkSizes(&f, created)
}

// FlagRef names a flag of a tenant.
type FlagRef struct {
	TenantID string
	Key      string
	// ProjectID, if set, is the project that the flag must be in; otherwise NotFound.
	ProjectID string
	// IfVersions, if not nil, must contain the flag's version; otherwise PreconditionFailed.
	IfVersions []events.Revision
}

func (r FlagRef) Stream() string { return events.FlagStream(r.TenantID, r.Key) }

func (r FlagRef) Tenant() string { return r.TenantID }

// admit refuses a flag that does not exist, is not in the project, or has an unexpected version.
func (r FlagRef) admit(f state.Flag) error {
	if !f.Exists || r.ProjectID != "" && f.ProjectID != r.ProjectID {
		return Refuse(NotFound, "no flag has the key %q", r.Key)
	}
	return r.admitVersion(f)
}

// admitVersion refuses a flag with an unexpected version.
func (r FlagRef) admitVersion(f state.Flag) error {
	if r.IfVersions != nil && !slices.Contains(r.IfVersions, f.Version) {
		return &Error{
			Kind:    PreconditionFailed,
			Detail:  "the flag has changed: its version is " + strconv.FormatUint(uint64(f.Version), 10),
			Version: f.Version,
		}
	}
	return nil
}

// UpdateFlag changes the sent fields of a flag; nil leaves a field unchanged.
type UpdateFlag struct {
	FlagRef
	Name         *string
	Description  *string
	DefaultValue json.RawMessage `json:",omitempty"`
	Tags         *[]string       // a pointer to nil was sent as null, which is refused
	Status       *events.FlagStatus
	MoveTo       *string // a project; empty for none
	// ProjectMissing is about MoveTo. Like OwnerMissing, see CreateFlag.
	ProjectMissing bool
	Permanent      *bool
	ClientSide     *bool
	Owner          *string // empty for none
	OwnerMissing   bool
	Links          *[]events.Link
	OffServes      *string     // see CreateFlag
	Dependents     []Dependent // needed if the status becomes archived
	EnabledSent    bool        // refused: SwitchFlag changes it
}

func (c UpdateFlag) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	wrong.Check(!c.EnabledSent, "enabled", "is not changed here: POST to /enable or /disable")
	if c.Name != nil {
		CheckText(wrong, "name", *c.Name, 1, maxName)
	}
	if c.Description != nil {
		CheckText(wrong, "description", *c.Description, 0, maxDescription)
	}
	if c.DefaultValue != nil {
		checkValue(wrong, "defaultValue", f.Type, c.DefaultValue)
	}
	if c.Tags != nil {
		wrong.Check(*c.Tags != nil, "tags", "must be a list: an empty one removes all tags")
		checkTags(wrong, *c.Tags)
	}
	wrong.Check(!c.ProjectMissing, "projectId", projectMissing)
	wrong.Check(!c.OwnerMissing, "owner", ownerMissing)
	if c.Links != nil {
		checkLinks(wrong, *c.Links)
	}
	offServes := checkOffServes(wrong, c.OffServes, f.OffServes)
	if c.Status != nil {
		known := []events.FlagStatus{events.ActiveFlag, events.InactiveFlag, events.ArchivedFlag}
		wrong.Check(slices.Contains(known, *c.Status), "status", "must be one of active, inactive, archived")
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	to := f
	assignSent(&to.Name, c.Name)
	assignSent(&to.Description, c.Description)
	assignSent(&to.ProjectID, c.MoveTo)
	assignSent(&to.Permanent, c.Permanent)
	assignSent(&to.ClientSide, c.ClientSide)
	assignSent(&to.Owner, c.Owner)
	assignSent(&to.Links, c.Links)
	to.OffServes = offServes
	if c.DefaultValue != nil {
		to.DefaultValue = c.DefaultValue
	}
	if c.Tags != nil && !sameTags(f.Tags, tagSet(*c.Tags)) {
		to.Tags = tagSet(*c.Tags)
	}
	facts := fieldChanges(&f, &to)
	if c.Status != nil && *c.Status != f.Status {
		to.Status = *c.Status
		if err := checkDependents(c.Dependents, &f, &to); err != nil {
			return nil, err
		}
		facts = append(facts, events.FlagStatusChanged{From: f.Status, To: *c.Status})
	}
	return checkSizes(&f, facts...)
}

// fieldChanges returns a FlagUpdated with the fields that differ, or nothing.
func fieldChanges(from, to *state.Flag) []events.Fact {
	updated := events.FlagUpdated{
		Name:         changed(from.Name, &to.Name, equal),
		Description:  changed(from.Description, &to.Description, equal),
		DefaultValue: changedValue(from.DefaultValue, to.DefaultValue),
		Tags:         changed(from.Tags, &to.Tags, slices.Equal),
		ProjectID:    changed(from.ProjectID, &to.ProjectID, equal),
		Permanent:    changed(from.Permanent, &to.Permanent, equal),
		ClientSide:   changed(from.ClientSide, &to.ClientSide, equal),
		Owner:        changed(from.Owner, &to.Owner, equal),
		Links:        changed(from.Links, &to.Links, slices.Equal),
		OffServes:    changed(from.OffServes, &to.OffServes, equal),
	}
	if updated == (events.FlagUpdated{}) {
		return nil
	}
	return []events.Fact{updated}
}

// SwitchFlag enables or disables a flag in an environment.
type SwitchFlag struct {
	FlagRef
	Environment events.EnvironmentRef
	On          bool
}

func (c SwitchFlag) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	switch {
	case f.Enabled.Has(c.Environment.ID) == c.On:
		return nil, nil
	case c.On:
		return []events.Fact{events.FlagEnabled{Environment: c.Environment}}, nil
	default:
		return []events.Fact{events.FlagDisabled{Environment: c.Environment}}, nil
	}
}

// DeleteFlag deletes a flag. Its history stays, and its key is free again.
type DeleteFlag struct {
	FlagRef
	Dependents []Dependent
}

func (c DeleteFlag) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	if err := checkDependents(c.Dependents, &f, &state.Flag{}); err != nil {
		return nil, err
	}
	return []events.Fact{events.FlagDeleted{}}, nil
}

// tagSet removes repeated tags, preserving the order.
func tagSet(tags []string) []string {
	var set []string
	seen := map[string]bool{}
	for _, tag := range tags {
		if !seen[tag] {
			seen[tag] = true
			set = append(set, tag)
		}
	}
	return set
}

// sameTags compares tags as sets: their order does not matter.
func sameTags(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// checkTags checks distinct tags. A message names the first position of a tag in the request.
func checkTags(wrong FieldErrors, tags []string) {
	set := tagSet(tags)
	if len(set) > maxTags {
		wrong.Check(false, "tags", "at most %d tags", maxTags)
		return
	}
	for _, tag := range set {
		CheckText(wrong, "tags["+strconv.Itoa(slices.Index(tags, tag))+"]", tag, 1, maxTag)
	}
}

// checkOffServes returns what was sent, or the value before if nothing was.
func checkOffServes(wrong FieldErrors, sent *string, before events.OffServes) events.OffServes {
	if sent == nil {
		return before
	}
	serves, ok := events.ParseOffServes(*sent)
	wrong.Check(ok, "offServes", "must be %s or %s", events.OffServesValue.Text(), events.OffServesCode.Text())
	return serves
}

func checkLinks(wrong FieldErrors, links []events.Link) {
	wrong.Check(len(links) <= maxLinks, "links", "at most %d links", maxLinks)
	for i, link := range links[:min(len(links), maxLinks)] {
		field := "links[" + strconv.Itoa(i) + "]"
		CheckText(wrong, field+".title", link.Title, 1, maxName)
		CheckText(wrong, field+".url", link.URL, 1, maxLinkURL)
		address, err := url.Parse(link.URL)
		wrong.Check(err == nil && strings.HasPrefix(link.URL, "https://") && address.Hostname() != "", field+".url",
			"must be an address that begins with https://")
	}
}
