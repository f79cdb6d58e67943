package state

import (
	"slices"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/rules"
)

// Segment is the state of a segment's stream.
type Segment struct {
	events.SegmentCreated
	Exists   bool          `json:"exists,omitempty"`
	Rules    []events.Rule `json:"rules,omitempty"`
	Included Members       `json:"included"`
	Excluded Members       `json:"excluded"`
	// Uses are the segments that the rules refer to, by key.
	Uses      []SegmentUse    `json:"uses,omitempty"`
	CreatedAt time.Time       `json:"createdAt,omitzero"`
	UpdatedAt time.Time       `json:"updatedAt,omitzero"` // when the store recorded the version
	Version   events.Revision `json:"version"`
	// CreatedVersion is the version with which this life of the key began.
	CreatedVersion events.Revision `json:"createdVersion,omitempty"`
	ChangedAt      time.Time       `json:"-"` // the time of the last event by the clock of its node; commands use it
	// Salted says that this or an earlier life of the key was private, and Forgotten which version last forgot the
	// members of all of them. Commands use both.
	Salted    bool            `json:"-"`
	Forgotten events.Revision `json:"-"`
	// Salt is that of a private segment's lists, whose hashes match nobody without it. No fact has it: who evaluates the
	// segment sets it.
	Salt []byte `json:"salt,omitempty"`
	// SaltMissing is set while the salt could not be loaded: answers may be others once it is.
	SaltMissing bool         `json:"saltMissing,omitempty"`
	LastChange  MemberChange `json:"-"`
}

// MemberChange counts what the last request that changed members has changed.
type MemberChange struct {
	RequestID      string
	Added, Removed int
}

// SegmentUse is a segment that the rules of another refer to, since a recorded time without a break.
type SegmentUse struct {
	Key   string    `json:"key"`
	Since time.Time `json:"since"`
}

// Apply implements State.
func (s *Segment) Apply(r events.Recorded) {
	s.Version, s.UpdatedAt, s.ChangedAt = r.Revision, r.At, r.Time
	switch fact := r.Fact.(events.SegmentFact).(type) {
	case events.SegmentCreated:
		*s = Segment{
			SegmentCreated: fact, Exists: true,
			CreatedAt: r.At, UpdatedAt: r.At, ChangedAt: r.Time, Version: r.Revision, CreatedVersion: r.Revision,
			Salted: s.Salted || fact.Private, Forgotten: s.Forgotten,
		}
	case events.SegmentUpdated:
		fact.Name.Apply(&s.Name)
		fact.Description.Apply(&s.Description)
		fact.Tags.Apply(&s.Tags)
	case events.SegmentRulesChanged:
		s.Rules = applyRules(s.Rules, fact.Rules())
		s.setUses(r.At)
	case events.SegmentMembersAdded:
		s.changeMembers(r, fact.List, func(m Members) Members { return m.With(texts(fact.Members, fact.Hashes)) })
	case events.SegmentMembersRemoved:
		s.changeMembers(r, fact.List, func(m Members) Members { return m.Without(texts(fact.Members, fact.Hashes)) })
	case events.SegmentForgotten:
		s.Forgotten = r.Revision
		if s.Private { // or an earlier life of the key was
			s.SaltID, s.Salt, s.Included, s.Excluded = fact.SaltID, nil, Members{}, Members{}
		}
	case events.SegmentDeleted:
		s.Exists = false
	case events.SegmentReverted: // facts before it in the same append have restored the rest
	}
}

// texts returns what the lists hold of a fact: its members, or their hashes.
func texts(members, hashes []string) []string {
	if len(hashes) > 0 {
		return hashes
	}
	return members
}

func (s *Segment) changeMembers(r events.Recorded, name events.MemberList, change func(Members) Members) {
	list := s.List(name)
	if list == nil {
		return
	}
	before := list.Len()
	*list = change(*list)
	if s.LastChange.RequestID != r.RequestID {
		s.LastChange = MemberChange{RequestID: r.RequestID}
	}
	s.LastChange.Added += max(0, list.Len()-before)
	s.LastChange.Removed += max(0, before-list.Len())
}

// List returns a list of members, nil for an unknown one.
func (s *Segment) List(name events.MemberList) *Members {
	switch name {
	case events.Included:
		return &s.Included
	case events.Excluded:
		return &s.Excluded
	default:
		return nil
	}
}

// setUses finds the segments that the rules refer to. Those that they did not refer to before are used since a time.
func (s *Segment) setUses(at time.Time) {
	before := s.Uses
	s.Uses = nil
	for _, key := range SegmentsOf(s.Rules) {
		use := SegmentUse{key, at}
		if i := slices.IndexFunc(before, func(u SegmentUse) bool { return u.Key == key }); i >= 0 {
			use = before[i]
		}
		s.Uses = append(s.Uses, use)
	}
}

// SegmentsOf returns the sorted keys of the segments that rules refer to.
func SegmentsOf(list []events.Rule) (keys []string) {
	for i := range list {
		for _, c := range list[i].Conditions {
			keys = append(keys, SegmentsOfCondition(c)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// SegmentsOfCondition returns the keys of the segments that a condition refers to.
func SegmentsOfCondition(c events.Condition) (keys []string) {
	if c.Op != events.InSegment {
		return nil
	}
	for _, value := range c.Values {
		if key, err := rules.ReadText(value); err == nil {
			keys = append(keys, strings.Clone(key))
		}
	}
	return keys
}

// SetRules replaces the rules, without a new version.
func (s *Segment) SetRules(rules []events.Rule) {
	s.Rules = rules
	s.setUses(s.UpdatedAt)
}

// Clone implements State. Rules, uses and members are replaced, not changed.
func (s *Segment) Clone() Segment { return *s }

// Size implements State.
func (s *Segment) Size() int {
	return 512 + 2*s.content() + memberOverhead*(s.Included.Len()+s.Excluded.Len())
}

// segmentOverhead is what ids and field names take in JSON.
const segmentOverhead = 256

// Bytes returns the size that counts against limits, 0 if the segment does not exist.
func (s *Segment) Bytes() int {
	if !s.Exists {
		return 0
	}
	return s.content()
}

func (s *Segment) content() int {
	n := segmentOverhead + len(s.Key) + textBytes(s.Name) + textBytes(s.Description) + s.MemberBytes()
	for _, tag := range s.Tags {
		n += textBytes(tag) + len(`"",`)
	}
	for i := range s.Rules {
		n += ruleBytes(&s.Rules[i])
	}
	return n
}

// MemberBytes returns the size of both lists of members: see Members.Bytes.
func (s *Segment) MemberBytes() int { return s.Included.Bytes() + s.Excluded.Bytes() }
