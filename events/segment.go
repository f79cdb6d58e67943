package events

import (
	"strings"
	"time"
)

const segmentStreams = "segment-"

// SegmentStream returns the name of a segment's stream. It holds the key, so the store itself keeps keys unique in a
// tenant.
func SegmentStream(tenantID, key string) string { return segmentStreams + tenantID + "." + key }

// ParseSegmentStream is the reverse of SegmentStream. For the name of any other stream it returns empty strings.
func ParseSegmentStream(stream string) (tenantID, key string) {
	name, ok := strings.CutPrefix(stream, segmentStreams)
	if !ok {
		return "", ""
	}
	tenantID, key, _ = strings.Cut(name, ".")
	return tenantID, key
}

// MemberList is one of the two lists of a segment's members.
type MemberList string

// The lists. Excluded takes precedence over Included, and Included over the rules.
const (
	Included MemberList = "included"
	Excluded MemberList = "excluded"
)

// MaxMembersOfFact limits the members that one fact adds or removes: an append has several facts for more.
const MaxMembersOfFact = 1000

// SegmentFact is a fact of a segment's stream.
//
//sumtype:decl
type SegmentFact interface {
	Fact
	segmentFact()
}

// SegmentCreated creates a segment: conditions that flags share. When a segment is deleted its key is free: the next
// segment with that key has its own SegmentCreated in the same stream.
type SegmentCreated struct {
	TenantID    string   `json:"tenantId"`
	Key         string   `json:"key"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	// Private segments record hashes of members: see SegmentMembersAdded.
	Private bool   `json:"private,omitempty"`
	SaltID  string `json:"saltId,omitempty"` // names the salt of a private segment, which no fact holds
}

// SegmentUpdated changes fields of a segment.
type SegmentUpdated struct {
	Name        *Change[string]   `json:"name,omitempty"`
	Description *Change[string]   `json:"description,omitempty"`
	Tags        *Change[[]string] `json:"tags,omitempty"`
}

// SegmentRulesChanged holds the changes of a segment's rules, as RulesChanged does of a flag's. The rules have no salt
// and serve nothing: who matches one of them is in the segment.
type SegmentRulesChanged struct {
	Added   []Rule            `json:"added,omitempty"`
	Removed []Rule            `json:"removed,omitempty"`
	Changed []Change[Rule]    `json:"changed,omitempty"`
	Order   *Change[[]string] `json:"order,omitempty"`
}

// ChangeSegmentRules returns the fact that turns one list of rules into another.
func ChangeSegmentRules(before, after []Rule) SegmentRulesChanged {
	c := ChangeRules(EnvironmentRef{}, before, after)
	return SegmentRulesChanged{c.Added, c.Removed, c.Changed, c.Order}
}

// Rules returns the changes without what a flag's have beside.
func (c SegmentRulesChanged) Rules() RulesChanged {
	return RulesChanged{Added: c.Added, Removed: c.Removed, Changed: c.Changed, Order: c.Order}
}

// SegmentMembersAdded adds members to a list, at most MaxMembersOfFact. They are sorted. A private segment's fact has
// their hashes instead.
type SegmentMembersAdded struct {
	List    MemberList `json:"list"`
	Members []string   `json:"members,omitempty"`
	Hashes  []string   `json:"hashes,omitempty"`
}

// SegmentMembersRemoved removes members from a list, at most MaxMembersOfFact, as SegmentMembersAdded adds them.
type SegmentMembersRemoved struct {
	List    MemberList `json:"list"`
	Members []string   `json:"members,omitempty"`
	Hashes  []string   `json:"hashes,omitempty"`
}

// SegmentForgotten forgets the members of all lives of a key that were private. Their salts are deleted, so that their
// lists match nobody at any time. The lists of a private segment become empty, and SaltID names their next salt; it is
// empty if the key has no private segment now.
type SegmentForgotten struct {
	SaltID string `json:"saltId"`
}

// SegmentDeleted deletes a segment. Its key is free again.
type SegmentDeleted struct{}

// SegmentReverted ends a revert: the other facts of the same append come before it.
type SegmentReverted struct {
	Version Revision  `json:"version"`     // the version that was restored
	At      time.Time `json:"at,omitzero"` // the requested time; zero if a version was requested
}

func (SegmentCreated) StoredName() string        { return "segment.created" }
func (SegmentUpdated) StoredName() string        { return "segment.updated" }
func (SegmentRulesChanged) StoredName() string   { return "segment.rules_changed" }
func (SegmentMembersAdded) StoredName() string   { return "segment.members_added" }
func (SegmentMembersRemoved) StoredName() string { return "segment.members_removed" }
func (SegmentForgotten) StoredName() string      { return "segment.forgotten" }
func (SegmentDeleted) StoredName() string        { return "segment.deleted" }
func (SegmentReverted) StoredName() string       { return "segment.reverted" }

func (SegmentCreated) segmentFact()        {}
func (SegmentUpdated) segmentFact()        {}
func (SegmentRulesChanged) segmentFact()   {}
func (SegmentMembersAdded) segmentFact()   {}
func (SegmentMembersRemoved) segmentFact() {}
func (SegmentForgotten) segmentFact()      {}
func (SegmentDeleted) segmentFact()        {}
func (SegmentReverted) segmentFact()       {}
