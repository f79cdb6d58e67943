package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

// answers lists what each flag of a tenant serves in production, with what the answers depend on.
func answers(t *Tenant) (list []string) {
	for _, key := range t.FlagKeys() {
		f, d, _ := t.FlagWithDependencies(key)
		r, err := f.Evaluate(production.ID, &evaluation.Context{TargetingKey: "u", Dependencies: d})
		if r.AskedAt.Before(r.ChangedAt) { // the revision has the newest
			r.AskedAt = r.ChangedAt
		}
		list = append(list, fmt.Sprint(key, " ", shown(r), " ", err))
	}
	return list
}

// Whatever changes, a replica answers to the byte as the snapshot does that feeds it, also one that begins later.
func TestReplicaAnswersAsItsSnapshot(t *testing.T) {
	keys, segments := []string{"a", "b", "c", "d"}, []string{"s", "t"}
	rapid.Check(t, func(t *rapid.T) {
		s := newScribe()
		tenant, _ := s.Tenant("t")
		environment, _ := tenant.Environment(production.Name)
		feed, replica := s.Feed(tenant, environment, nil), NewReplica()
		defer feed.Close()
		apply := func(r *Replica, data []byte) {
			var e FeedEvent
			if err := json.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			if err := r.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		begin := func(f *Feed, r *Replica) {
			for update, err := range f.FullState() {
				if err != nil {
					t.Fatal(err)
				}
				apply(r, update.Events[0])
			}
		}
		begin(feed, replica)
		revisions := map[string]events.Revision{}
		record := func(stream string, facts ...events.Fact) {
			for _, fact := range facts {
				revisions[stream]++
				s.at.Commit++
				e := recorded(stream, revisions[stream], fact)
				e.Position, e.At = s.at, time.Date(2026, 1, 1, 0, 0, int(s.at.Commit), 0, time.UTC)
				s.applyAll([]events.Recorded{e})
			}
		}
		changeSegment := func() {
			key := rapid.SampledFrom(segments).Draw(t, "segment")
			stream, list := events.SegmentStream("t", key), rapid.SampledFrom(memberLists).Draw(t, "list")
			_, exists := tenant.Segments().Find(key)
			switch n := rapid.IntRange(0, 3).Draw(t, "change"); {
			case !exists:
				record(stream, events.SegmentCreated{TenantID: "t", Key: key, ID: key},
					events.SegmentMembersAdded{List: list, Members: []string{"u", "v"}})
			case n == 0:
				record(stream, events.SegmentDeleted{})
			case n == 1:
				record(stream, events.SegmentMembersRemoved{List: list, Members: []string{"u"}})
			default:
				rule := asksFor(rapid.SampledFrom(segments).Draw(t, "other"))
				live, _ := tenant.Segments().Last(key)
				record(stream, events.ChangeSegmentRules(live.State().Rules, []events.Rule{rule}[:n-2]))
			}
		}
		change := func() {
			if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
				changeSegment()
				return
			}
			key := rapid.SampledFrom(keys).Draw(t, "key")
			var facts []events.Fact
			_, exists := tenant.Flag(key)
			switch n := rapid.IntRange(0, 7).Draw(t, "change"); {
			case !exists:
				created := boolean
				created.Key, created.TenantID = key, "t"
				facts = append(facts, created, on)
			case n == 0:
				facts = append(facts, events.FlagDeleted{})
			case n == 1:
				facts = append(facts, on)
			case n == 2:
				facts = append(facts, events.FlagDisabled{Environment: production})
			case n < 5:
				f, _ := tenant.Flag(key)
				rule := asksFor(rapid.SampledFrom(segments).Draw(t, "segment"))
				rule.Serve = events.Serve{Value: evaluation.False}
				facts = append(facts, events.ChangeRules(production, f.State().Rules[production.ID], []events.Rule{rule}[:n-3]))
			default:
				facts = append(facts, needs(rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 2, rapid.ID).Draw(t, "others")...))
			}
			record(events.FlagStream("t", key), facts...)
		}
		same := func(what string, r *Replica) {
			of, ok := r.OwnTenant()
			if !ok {
				t.Fatalf("%s has no tenant", what)
			}
			if got, want := answers(of), answers(tenant); !slices.Equal(got, want) {
				t.Fatalf("%s answers\n%q, want\n%q", what, got, want)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "updates") {
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				change()
			}
			update, err := feed.Next()
			if err != nil || update.Reset {
				t.Fatal(update.Reset, err)
			}
			for _, data := range update.Events {
				apply(replica, data)
			}
			same("the replica", replica)
		}
		late, copied := NewReplica(), NewReplica()
		other := s.Feed(tenant, environment, nil)
		defer other.Close()
		begin(other, late)
		same("a late replica", late)
		for _, e := range replica.Contents() {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			apply(copied, data)
		}
		same("its copy on disk", copied)
	})
}
