package snapshot

import (
	"fmt"
	"log/slog"
	"testing"

	"flagledger/events"
)

// BenchmarkEvaluate finds a flag in its tenant and evaluates it.
func BenchmarkEvaluate(b *testing.B) {
	for _, flags := range []int{10, 10_000} {
		s := New()
		environment := events.EnvironmentRef{ID: "e1", Name: "production"}
		page := events.Page{Events: []events.Recorded{
			recorded("tenant-t", 1, events.TenantCreated{ID: "t"}),
			recorded("tenant-t", 2, events.EnvironmentAdded{Environment: environment}),
		}}
		for i := range flags {
			stream := events.FlagStream("t", fmt.Sprintf("flag-%d", i))
			page.Events = append(page.Events,
				recorded(stream, 1, events.FlagCreated{Key: "f", Type: events.BooleanFlag, DefaultValue: []byte("false"), Salt: "salt"}),
				recorded(stream, 2, events.FlagEnabled{Environment: environment}))
		}
		split := events.FlagStream("t", "split")
		page.Events = append(page.Events,
			recorded(split, 1, events.FlagCreated{Key: "split", Type: events.BooleanFlag, Salt: "salt", Variations: []events.Variation{
				{ID: "a", Value: []byte("true"), Weight: 1000}, {ID: "b", Value: []byte("false"), Weight: 3000},
			}}),
			recorded(split, 2, events.FlagEnabled{Environment: environment}))
		s.apply(page, slog.New(slog.DiscardHandler))
		for name, key := range map[string]string{"boolean": "flag-7", "split": "split"} {
			b.Run(fmt.Sprintf("%s/flags=%d", name, flags), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					t, _ := s.Tenant("t")
					e, _ := t.Environment("production")
					f, _ := t.Flag(key)
					if r, err := f.Evaluate(e.ID, &Context{TargetingKey: "user-42"}); err != nil || !r.Enabled {
						b.Fatal(r, err)
					}
				}
			})
		}
	}
}

func recorded(stream string, revision events.Revision, fact events.Fact) events.Recorded {
	return events.Recorded{Event: events.Event{Fact: fact}, Stream: stream, Revision: revision, Name: fact.StoredName()}
}
