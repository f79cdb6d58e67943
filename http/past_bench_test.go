package http_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// BenchmarkEvaluateThePast evaluates a flag at one of its many versions, or at a time. The median should be at most 2
// ms with 1,000 versions, and 5 ms with 10,000.
func BenchmarkEvaluateThePast(b *testing.B) {
	me := nodetest.New(b).SignUp("bench@example.com")
	store := me.Service.Store()
	for _, versions := range []int{1_000, 10_000} {
		key := fmt.Sprintf("k%d", versions)
		me.CreateEnabledFlag(key,
			map[string]any{"flag_variations": []any{map[string]any{"name": "a", "value": true, "weight": 1}}})
		stream, last := events.FlagStream(me.Tenant, key), 2
		for last < versions {
			var batch []events.Event
			for range min(500, versions-last) {
				name := fmt.Sprint("name ", last+len(batch))
				batch = append(batch, events.Event{
					ID: uuid.Must(uuid.NewV7()),
					Metadata: events.Metadata{
						Time:  time.Now().UTC().Truncate(time.Millisecond),
						Actor: events.Actor{Kind: events.UserActor, ID: me.UserID},
					},
					Fact: events.FlagUpdated{Name: &events.Change[string]{To: name}},
				})
			}
			if _, err := store.Append(b.Context(), stream, events.Revision(last), batch); err != nil {
				b.Fatal(err)
			}
			last += len(batch)
		}
		me.Service.Eventually("the flag is shown", func() bool {
			return me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Object()["version"] == float64(versions)
		})
		evaluate := func(query string) *nodetest.Answer {
			return me.Call("POST", nodetest.FlagPath(key, "/evaluate", query), `{"targetingKey":"u"}`).Want(200)
		}
		byVersion := func() string { return fmt.Sprintf("?version=%d", 1+rand.IntN(versions)) }
		var times []string
		for range 50 {
			times = append(times, "?at="+evaluate(byVersion()).Header.Get("X-Evaluated-At"))
		}
		for name, query := range map[string]func() string{"version": byVersion, "time": func() string { return times[rand.IntN(len(times))] }} {
			b.Run(fmt.Sprintf("versions=%d/by=%s", versions, name), func(b *testing.B) {
				var took nodetest.Samples
				for b.Loop() {
					began := time.Now()
					evaluate(query())
					took.Add(time.Since(began))
				}
				took.Report(b, 50)
				took.Report(b, 99)
			})
		}
	}
}
