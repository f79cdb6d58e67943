package main

import (
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
)

// BenchmarkCopy copies 100,000 events from Postgres to EventStoreDB and back to another Postgres, and compares the
// digests of all streams each time. EventStoreDB is the tests' server, which stores all in memory.
func BenchmarkCopy(b *testing.B) {
	const flags, each = 20_000, 5
	for b.Loop() {
		_, home := nodetest.BenchStore(b)
		nodetest.Seed(b, home, flags)
		away, err := eventstore.Open(b.Context(), esdbtest.New(b).URL(), nodetest.Log(b))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(away.Close)
		_, back := nodetest.BenchStore(b)
		move := func(from, to events.Store, unit string) {
			began := time.Now()
			if err := copyEvents(b.Context(), from, to, AcceptTimes{}, nodetest.Log(b)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(flags*each/time.Since(began).Seconds(), unit)
			if err := compareStores(b.Context(), from, to, nodetest.Log(b)); err != nil {
				b.Fatal(err)
			}
		}
		move(home, away, "there-events/s")
		move(away, back, "back-events/s")
	}
}
