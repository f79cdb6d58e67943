package commands

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// MaxSegments limits the segments of a tenant, because every node holds all in memory. See Writer.Reserve for its
// precision.
const MaxSegments = 1000

// maxSegmentsUsed limits the segments that the rules of a flag, or of a segment, refer to.
const maxSegmentsUsed = 50

// MaxSegmentChain limits how many segments refer to each other in a row, the first included.
const MaxSegmentChain = 4

// SegmentErrors says by key why rules cannot refer to a segment, as the snapshot has it. It may miss a concurrent
// change: evaluation gives rules with a missing segment, or with a cycle, a meaning.
type SegmentErrors map[string]string

// CreateSegment creates a segment. Its key must be free in the tenant.
type CreateSegment struct {
	TenantID    string
	Key         string
	ID          string // new
	Name        *string
	Description string
	Tags        []string
	Rules       []NewRule // nil for none
	// SaltID names the salt of the lists of a private segment, which is stored already; empty for another.
	SaltID   string
	Unusable SegmentErrors
	// SegmentCount is the tenant's number of segments, from Writer.Reserve with MaxSegments.
	SegmentCount int
}

func (c CreateSegment) Stream() string { return events.SegmentStream(c.TenantID, c.Key) }

func (c CreateSegment) Tenant() string { return c.TenantID }

func (c CreateSegment) Decide(s state.Segment) ([]events.Fact, error) {
	check := ruleCheck{wrong: FieldErrors{}, unusable: c.Unusable}
	name := c.Key
	if c.Name != nil {
		name = *c.Name
	}
	check.wrong.Check(c.Key != "", "key", "is required")
	check.wrong.Check(keyPattern.MatchString(c.Key), "key", "must match %s", keyPattern)
	if c.Name != nil {
		CheckText(check.wrong, "name", name, 1, maxName)
	}
	CheckText(check.wrong, "description", c.Description, 0, maxDescription)
	checkTags(check.wrong, c.Tags)
	rules := check.rules(c.Rules, nil)
	check.segmentsUsed(rules)
	if err := check.wrong.Err(); err != nil {
		return nil, err
	}
	if s.Exists {
		return nil, Refuse(Conflict, "a segment with the key %q exists already", c.Key)
	}
	if err := checkSegmentCount(c.SegmentCount); err != nil {
		return nil, err
	}
	facts := []events.Fact{events.SegmentCreated{
		TenantID: c.TenantID, Key: c.Key, ID: c.ID, Name: name, Description: c.Description, Tags: tagSet(c.Tags),
		Private: c.SaltID != "", SaltID: c.SaltID,
	}}
	if len(rules) > 0 {
		facts = append(facts, events.ChangeSegmentRules(nil, rules))
	}
	return facts, nil
}

func checkSegmentCount(count int) error {
	if count >= MaxSegments {
		return Refuse(Conflict, "the tenant has %d segments, which is the limit: delete one first", count)
	}
	return nil
}

// SegmentRef names a segment of a tenant.
type SegmentRef struct {
	TenantID string
	Key      string
	// IfVersions, if not nil, must contain the segment's version; otherwise PreconditionFailed.
	IfVersions []events.Revision
}

func (r SegmentRef) Stream() string { return events.SegmentStream(r.TenantID, r.Key) }

func (r SegmentRef) Tenant() string { return r.TenantID }

// admit refuses a segment that does not exist or has an unexpected version.
func (r SegmentRef) admit(s state.Segment) error {
	if !s.Exists {
		return Refuse(NotFound, "no segment has the key %q", r.Key)
	}
	return r.admitVersion(s)
}

func (r SegmentRef) admitVersion(s state.Segment) error {
	if r.IfVersions != nil && !slices.Contains(r.IfVersions, s.Version) {
		return &Error{
			Kind:    PreconditionFailed,
			Detail:  "the segment has changed: its version is " + strconv.FormatUint(uint64(s.Version), 10),
			Version: s.Version,
		}
	}
	return nil
}

// UpdateSegment changes the sent fields of a segment; nil leaves a field unchanged.
type UpdateSegment struct {
	SegmentRef
	Name        *string
	Description *string
	Tags        *[]string // a pointer to nil was sent as null, which is refused
}

func (c UpdateSegment) Decide(s state.Segment) ([]events.Fact, error) {
	if err := c.admit(s); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	if c.Name != nil {
		CheckText(wrong, "name", *c.Name, 1, maxName)
	}
	if c.Description != nil {
		CheckText(wrong, "description", *c.Description, 0, maxDescription)
	}
	if c.Tags != nil {
		wrong.Check(*c.Tags != nil, "tags", "must be a list: an empty one removes all tags")
		checkTags(wrong, *c.Tags)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	to := s
	assignSent(&to.Name, c.Name)
	assignSent(&to.Description, c.Description)
	if c.Tags != nil && !sameTags(s.Tags, tagSet(*c.Tags)) {
		to.Tags = tagSet(*c.Tags)
	}
	return segmentChanges(&s, &to), nil
}

// segmentChanges returns a SegmentUpdated with the fields that differ, or nothing.
func segmentChanges(from, to *state.Segment) []events.Fact {
	updated := events.SegmentUpdated{
		Name:        changed(from.Name, &to.Name, equal),
		Description: changed(from.Description, &to.Description, equal),
		Tags:        changed(from.Tags, &to.Tags, slices.Equal),
	}
	if updated == (events.SegmentUpdated{}) {
		return nil
	}
	return []events.Fact{updated}
}

// SetSegmentRules replaces the rules of a segment.
type SetSegmentRules struct {
	SegmentRef
	Rules    []NewRule // nil if they were not sent, which is refused
	Unusable SegmentErrors
}

func (c SetSegmentRules) Decide(s state.Segment) ([]events.Fact, error) {
	if err := c.admit(s); err != nil {
		return nil, err
	}
	check := ruleCheck{wrong: FieldErrors{}, unusable: c.Unusable}
	check.wrong.Check(c.Rules != nil, "rules", "is required: an empty list removes all rules")
	after := check.rules(c.Rules, s.Rules)
	check.segmentsUsed(after)
	if err := check.wrong.Err(); err != nil {
		return nil, err
	}
	change := events.ChangeSegmentRules(s.Rules, after)
	if change.Rules().Empty() {
		return nil, nil
	}
	return []events.Fact{change}, nil
}

// Costly reports what SetRules.Costly does.
func (c SetSegmentRules) Costly() bool { return costly(c.Rules) }

// DeleteSegment deletes a segment that nothing uses. Its history stays, and its key is free again.
type DeleteSegment struct {
	SegmentRef
	// Users are the flags and segments whose rules refer to it, in words. They may miss a concurrent change: a missing
	// segment has no members.
	Users []string
}

func (c DeleteSegment) Decide(s state.Segment) ([]events.Fact, error) {
	if err := c.admit(s); err != nil {
		return nil, err
	}
	if len(c.Users) > 0 {
		return nil, Refuse(Conflict, "the segment is used by %s", someOf(c.Users))
	}
	return []events.Fact{events.SegmentDeleted{}}, nil
}

// ForgetMembers empties the lists of a private segment, and of earlier segments with its key. Afterwards delete the
// salts that the stream names before the fact: the lists match nobody then, also in the past.
type ForgetMembers struct {
	SegmentRef
	SaltID string // of the lists from now on, which is stored already; empty if there is no private segment
}

func (c ForgetMembers) Decide(s state.Segment) ([]events.Fact, error) {
	if !s.Exists && !s.Salted {
		return nil, c.admit(s)
	}
	if err := c.admitVersion(s); err != nil {
		return nil, err
	}
	if !s.Salted {
		return nil, Refuse(Conflict, "the segment is not private: its members stay in its history")
	}
	if !s.Exists || !s.Private {
		return []events.Fact{events.SegmentForgotten{}}, nil
	}
	if c.SaltID == "" {
		return nil, Refuse(Unavailable, "the segment has just been created by another call: try again")
	}
	return []events.Fact{events.SegmentForgotten{SaltID: c.SaltID}}, nil
}

// maxNamedUsers limits the things that a message names.
const maxNamedUsers = 20

func someOf(names []string) string {
	if rest := len(names) - maxNamedUsers; rest > 0 {
		return strings.Join(names[:maxNamedUsers], ", ") + " and " + strconv.Itoa(rest) + " more"
	}
	return strings.Join(names, ", ")
}

// RevertSegment reverts a segment to an earlier state, in one append. It does nothing if the segment has that state. A
// deleted or replaced segment is re-created with its old ids.
type RevertSegment struct {
	SegmentRef
	To       state.Segment
	At       time.Time     // the requested time; zero if a version was requested
	Unusable SegmentErrors // about the rules of To
	// SegmentCount is the tenant's number of segments, from Writer.Reserve with MaxSegments. It matters for a deleted one.
	SegmentCount int
}

func (c RevertSegment) Decide(s state.Segment) ([]events.Fact, error) {
	if err := c.admitVersion(s); err != nil {
		return nil, err
	}
	if s.Version == c.To.Version {
		return nil, nil
	}
	now := state.SegmentsOf(s.Rules)
	for _, key := range state.SegmentsOf(c.To.Rules) {
		if why := c.Unusable[key]; why != "" && (!s.Exists || !slices.Contains(now, key)) {
			return nil, Refuse(Conflict, "the rules referred to the segment %q, which %s", key, why)
		}
	}
	if !s.Exists {
		if err := checkSegmentCount(c.SegmentCount); err != nil {
			return nil, err
		}
	}
	if c.To.Private && c.To.Version < s.Forgotten {
		return nil, Refuse(Conflict, "the members of that version were forgotten")
	}
	from := s
	var facts []events.Fact
	if !s.Exists || s.ID != c.To.ID {
		if s.Exists {
			facts = append(facts, events.SegmentDeleted{})
		}
		facts, from = append(facts, c.To.SegmentCreated), state.Segment{SegmentCreated: c.To.SegmentCreated}
	}
	facts = append(facts, segmentChanges(&from, &c.To)...)
	if change := events.ChangeSegmentRules(from.Rules, c.To.Rules); !change.Rules().Empty() {
		facts = append(facts, change)
	}
	for _, list := range []events.MemberList{events.Included, events.Excluded} {
		was, is := *from.List(list), *c.To.List(list)
		facts = append(facts, memberFacts(c.To.Private, list, is.Minus(was), was.Minus(is))...)
	}
	if len(facts) == 0 {
		return nil, nil
	}
	facts = append(facts, events.SegmentReverted{Version: c.To.Version, At: c.At})
	return checkSegmentSize(&s, facts)
}
