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

	maxMember       = 256 // bytes
	maxSegmentSize  = 100_000
	maxSegmentBytes = 8 << 20
)

// ChangeMembers adds members to a list of a segment and removes others.
type ChangeMembers struct {
	SegmentRef
	List   events.MemberList
	Add    []string
	Remove []string
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
	checkMembers(wrong, "add", c.Add)
	checkMembers(wrong, "remove", c.Remove)
	added := map[string]bool{}
	for _, member := range c.Add {
		added[member] = true
	}
	for i, member := range c.Remove {
		wrong.Check(!added[member], place("remove", i), "is in add too")
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(c.Add), list.Has)
	present := slices.DeleteFunc(slices.Clone(c.Remove), func(m string) bool { return !list.Has(m) })
	return checkSegmentSize(&s, memberFacts(c.List, missing, present))
}

func checkMembers(wrong FieldErrors, field string, members []string) {
	for i, member := range members {
		switch {
		case member == "":
			wrong.Check(false, place(field, i), "must not be empty")
		case len(member) > maxMember:
			wrong.Check(false, place(field, i), "must have at most %d bytes", maxMember)
		case strings.ContainsFunc(member, unicode.IsControl):
			wrong.Check(false, place(field, i), "must not contain control characters")
		}
	}
}

// memberFacts returns the facts that remove members from a list and add others.
func memberFacts(list events.MemberList, add, remove []string) (facts []events.Fact) {
	slices.Sort(add)
	slices.Sort(remove)
	for part := range slices.Chunk(slices.Compact(remove), events.MaxMembersOfFact) {
		facts = append(facts, events.SegmentMembersRemoved{List: list, Members: part})
	}
	for part := range slices.Chunk(slices.Compact(add), events.MaxMembersOfFact) {
		facts = append(facts, events.SegmentMembersAdded{List: list, Members: part})
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
