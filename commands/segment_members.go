package commands

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"flagledger/events"
	"flagledger/events/state"
)

// Limits of a segment's members.
const (
	// MaxMemberChanges limits the members that a call adds and removes.
	MaxMemberChanges = 10_000

	maxSegmentSize  = 100_000
	maxSegmentBytes = 8 << 20
)

// ChangeMembers adds members to a list of a segment and removes others.
type ChangeMembers struct {
	SegmentRef
	List   events.MemberList
	Add    []string
	Remove []string
	SaltID string // for a private segment: Add and Remove are hashes with this salt, see HashMembers
}

func (c ChangeMembers) Decide(s state.Segment) ([]events.Fact, error) {
	if err := c.admit(s); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	list := s.List(c.List)
	wrong.Check(list != nil, "list", "must be one of included, excluded")
	if len(c.Add)+len(c.Remove) > MaxMemberChanges {
		wrong.Check(false, "add", "at most %s members in a call", events.CountText(MaxMemberChanges))
		return nil, wrong.Err()
	}
	checkMembers(wrong, c.Add, c.Remove)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if c.SaltID != s.SaltID {
		return nil, Refuse(Conflict, "the segment has been forgotten or replaced at the same time")
	}
	missing := slices.DeleteFunc(slices.Clone(c.Add), list.Has)
	present := slices.DeleteFunc(slices.Clone(c.Remove), func(m string) bool { return !list.Has(m) })
	return checkSegmentSize(&s, memberFacts(s.Private, c.List, missing, present))
}

// HashMembers replaces the members of a change by their hashes with the salt of a private segment. salt is nil if it is
// lost, as after an import.
func HashMembers(salt []byte, add, remove []string) error {
	wrong := FieldErrors{}
	checkMembers(wrong, add, remove)
	if err := wrong.Err(); err != nil {
		return err
	}
	if salt == nil {
		return Refuse(Conflict, "the salt of the segment's lists is missing, as after an import: forget its members first")
	}
	for _, list := range [][]string{add, remove} {
		for i, member := range list {
			hash, _ := state.HashMember(salt, member) // none is too long
			list[i] = string(hash[:])
		}
	}
	return nil
}

// checkMembers checks the members of a change.
func checkMembers(wrong FieldErrors, add, remove []string) {
	checkTexts(wrong, "add", add)
	checkTexts(wrong, "remove", remove)
	added := map[string]bool{}
	for _, member := range add {
		added[member] = true
	}
	for i, member := range remove {
		wrong.Check(!added[member], place("remove", i), "is in add too")
	}
}

func checkTexts(wrong FieldErrors, field string, members []string) {
	for i, member := range members {
		switch {
		case member == "":
			wrong.Check(false, place(field, i), "must not be empty")
		case len(member) > state.MaxMember:
			wrong.Check(false, place(field, i), "must have at most %d bytes", state.MaxMember)
		case strings.ContainsFunc(member, unicode.IsControl):
			wrong.Check(false, place(field, i), "must not contain control characters")
		}
	}
}

// memberFacts returns the facts that remove members from a list and add others. Those of a private segment are hashes.
func memberFacts(private bool, list events.MemberList, add, remove []string) (facts []events.Fact) {
	slices.Sort(add)
	slices.Sort(remove)
	texts := func(part []string) (members, hashes []string) {
		if private {
			return nil, part
		}
		return part, nil
	}
	for part := range slices.Chunk(slices.Compact(remove), events.MaxMembersOfFact) {
		members, hashes := texts(part)
		facts = append(facts, events.SegmentMembersRemoved{List: list, Members: members, Hashes: hashes})
	}
	for part := range slices.Chunk(slices.Compact(add), events.MaxMembersOfFact) {
		members, hashes := texts(part)
		facts = append(facts, events.SegmentMembersAdded{List: list, Members: members, Hashes: hashes})
	}
	return facts
}

// checkSegmentSize returns facts, unless they make the segment larger than its limits.
func checkSegmentSize(s *state.Segment, facts []events.Fact) ([]events.Fact, error) {
	next := segmentAfter(s, facts)
	if n := next.Included.Len() + next.Excluded.Len(); n > max(maxSegmentSize, s.Included.Len()+s.Excluded.Len()) {
		return nil, Refuse(Conflict, "the segment would have %s members: it may have %s", events.CountText(n),
			events.CountText(maxSegmentSize))
	}
	if n := next.MemberBytes(); n > max(maxSegmentBytes, s.MemberBytes()) {
		return nil, Refuse(Conflict, "the members of the segment would take %s bytes: they may take %s",
			events.CountText(n), events.SizeText(maxSegmentBytes))
	}
	return facts, nil
}

// segmentAfter returns the state of a segment after facts that are not recorded yet.
func segmentAfter(s *state.Segment, facts []events.Fact) state.Segment {
	next := s.Clone()
	for _, fact := range facts {
		next.Apply(events.Recorded{Event: events.Event{Fact: fact}})
	}
	return next
}

// segmentsUsed checks how many segments rules refer to.
func (c *ruleCheck) segmentsUsed(rules ...[]events.Rule) {
	keys := state.SegmentsOf(slices.Concat(rules...))
	c.wrong.Check(len(keys) <= maxSegmentsUsed, "rules", "%s", fmt.Sprintf(
		"would refer to %d segments: at most %d", len(keys), maxSegmentsUsed))
}
