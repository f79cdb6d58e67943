package nodetest

import (
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
)

// BenchStore opens an event store with an empty log.
func BenchStore(b *testing.B) (string, *postgres.Store) {
	b.Helper()
	url := pgtest.URL(b)
	if err := node.Migrate(b.Context(), url, Log(b)); err != nil {
		b.Fatal(err)
	}
	store, err := postgres.Open(b.Context(), url, Log(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	return url, store
}

// Seed appends five facts to each of n flags.
func Seed(b *testing.B, store events.Store, n int) {
	b.Helper()
	environment := events.EnvironmentRef{ID: "e1", Name: "production"}
	var next atomic.Int64
	var writing sync.WaitGroup
	for range 64 {
		writing.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				key := "flag-" + strconv.FormatInt(i, 10)
				facts := []events.Fact{
					events.FlagCreated{
						TenantID:     "t",
						Key:          key,
						ID:           key,
						Name:         key,
						Type:         events.BooleanFlag,
						DefaultValue: json.RawMessage("false"),
						Salt:         "s",
						Tags:         []string{"web"},
					},
					events.FlagEnabled{Environment: environment},
					events.FlagUpdated{Description: &events.Change[string]{To: "What it is for"}},
					events.VariationAdded{
						Variation: events.Variation{ID: key, Name: "on", Value: json.RawMessage("true"), Weight: 1000},
					},
					events.FlagDisabled{Environment: environment},
				}
				batch := make([]events.Event, len(facts))
				for i, fact := range facts {
					batch[i] = events.Event{
						ID:       uuid.Must(uuid.NewV7()),
						Fact:     fact,
						Metadata: events.Metadata{Time: time.Now().UTC(), Actor: events.Actor{Kind: events.UserActor, ID: "u1"}},
					}
				}
				if _, err := store.Append(b.Context(), events.FlagStream("t", key), 0, batch); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
}
