package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/state"
)

// AcceptTimes is an option of commands that copy facts.
type AcceptTimes struct {
	AcceptTimesUntil time.Time `type:"time" placeholder:"TIME" help:"Take facts recorded up to this time of RFC 3339, even if the store's clock is earlier: for a log whose clock once ran ahead."`
}

// factCheck refuses facts that a store must not copy.
type factCheck struct {
	streams tenantFilter // the tenant whose facts are accepted
	latest  time.Time    // the latest recorded time that is accepted
	ids     []uint64     // a key of each id
	// owners maps the ids of clients and environments to their tenants' streams.
	owners map[string]string
}

func newFactCheck(ctx context.Context, to events.Store, accept AcceptTimes) (*factCheck, error) {
	now, _, err := to.Clock(ctx)
	if err != nil {
		return nil, err
	}
	c := &factCheck{latest: now.Add(events.MaxAhead), owners: map[string]string{}}
	if accept.AcceptTimesUntil.After(c.latest) {
		c.latest = accept.AcceptTimesUntil
	}
	return c, nil
}

// check returns why a fact is refused. Call it in log order.
func (c *factCheck) check(e events.Recorded) error {
	at := fmt.Sprintf("%s@%d", e.Stream, e.Revision)
	if _, stored := e.Fact.(events.Stored); stored {
		e.Event, e.Err = events.Decode(e.Stored)
	}
	described, err := state.Describe(e)
	if err != nil {
		return fmt.Errorf("%s cannot be read as a fact: %w", at, err)
	}
	if own, _ := ownStream.Lookup(e.Stream); !own(e) { // a described fact is in a known stream
		return fmt.Errorf("%s, %s, belongs to another stream", at, e.Name)
	}
	ours, err := c.streams.belongs(e)
	if err != nil {
		return err
	}
	if !ours {
		return fmt.Errorf("%s, %s, does not belong to the tenant %s", at, e.Name, c.streams.tenantID)
	}
	if owner := c.owner(e, described); owner != e.Stream {
		return fmt.Errorf("%s, %s: the id %s belongs to %s", at, e.Name, described.ResourceID, owner)
	}
	if e.At.After(c.latest) {
		return fmt.Errorf("%s: recorded %s: %w; --accept-times-until takes it if that log's clock once ran ahead",
			at, e.At.Format(events.RecordedFormat), events.ErrAhead)
	}
	if _, offset := e.Time.Zone(); offset != 0 {
		return fmt.Errorf("%s: metadata: the time is not in UTC", at)
	}
	return nil
}

// ownStream checks by kind of stream that the fact which begins a stream names that stream.
var ownStream = events.NewByStream(
	names(func(f events.FlagCreated) string { return events.FlagStream(f.TenantID, f.Key) }),
	names(func(f events.ProjectCreated) string { return events.ProjectStream(f.ID) }),
	names(func(f events.TenantCreated) string { return events.TenantStream(f.ID) }),
	names(func(f events.UserRegistered) string { return events.UserStream(f.ID) }),
	names(func(f events.InvitationCreated) string { return events.InvitationStream(f.ID) }),
	names(func(f events.SegmentCreated) string { return events.SegmentStream(f.TenantID, f.Key) }),
)

// names returns a check that facts of one type name their stream.
func names[F events.Fact](stream func(F) string) func(events.Recorded) bool {
	return func(e events.Recorded) bool {
		fact, ok := e.Fact.(F)
		return !ok || stream(fact) == e.Stream
	}
}

// owner returns the stream that a fact's client, key or environment belongs to: the first that names its id.
func (c *factCheck) owner(e events.Recorded, d state.Description) string {
	switch d.ResourceType {
	case "oauth_client", "environment", "evaluation_key":
	default:
		return e.Stream
	}
	if c.owners[d.ResourceID] == "" {
		c.owners[d.ResourceID] = e.Stream
	}
	return c.owners[d.ResourceID]
}

// note records the id of a fact in the store or to be copied.
func (c *factCheck) note(e events.Recorded) { c.ids = append(c.ids, idKey(e.ID)) }

// noteHeld records a fact in the store.
func (c *factCheck) noteHeld(e events.Recorded) {
	c.note(e)
	if d, err := state.Describe(e); err == nil {
		c.owner(e, d)
	}
}

// idKey returns a hash that takes half the memory of an id. Few ids share one.
func idKey(id uuid.UUID) uint64 {
	return binary.BigEndian.Uint64(id[:8]) ^ binary.BigEndian.Uint64(id[8:])
}

// checkIDs returns an error if an id occurs twice among the recorded facts. all reads them again.
func (c *factCheck) checkIDs(all iter.Seq2[events.Recorded, error]) error {
	slices.Sort(c.ids)
	repeated := map[uint64]bool{}
	for i := 1; i < len(c.ids); i++ {
		if c.ids[i] == c.ids[i-1] {
			repeated[c.ids[i]] = true
		}
	}
	c.ids = nil
	if len(repeated) == 0 {
		return nil
	}
	places := map[uuid.UUID]string{}
	for e, err := range all {
		if err != nil {
			return err
		}
		if !repeated[idKey(e.ID)] {
			continue
		}
		place := fmt.Sprintf("%s@%d", e.Stream, e.Revision)
		if first, twice := places[e.ID]; twice {
			return fmt.Errorf("the id %s occurs twice: %s and %s", e.ID, first, place)
		}
		places[e.ID] = place
	}
	return nil
}

// missing yields the facts after a store's revisions of their streams.
func missing(
	all iter.Seq2[events.Recorded, error], held func(stream string) events.Revision,
) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for e, err := range all {
			if (err != nil || e.Revision > held(e.Stream)) && !yield(e, err) {
				return
			}
		}
	}
}

// both yields one sequence and then the other.
func both(first, second iter.Seq2[events.Recorded, error]) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for _, all := range []iter.Seq2[events.Recorded, error]{first, second} {
			for e, err := range all {
				if !yield(e, err) {
					return
				}
			}
		}
	}
}
