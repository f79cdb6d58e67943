package systemtest

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/snapshot"
)

// BenchmarkCommand creates a flag durably: read, decide, append. "readable" includes the wait for read models and
// snapshot, as in the API.
func BenchmarkCommand(b *testing.B) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("durable/writers=%d", writers), func(b *testing.B) {
			_, store := nodetest.BenchStore(b)
			benchCommands(b, writer.NewWriter(store, writer.NoWait, writer.NoQuotas{}, time.Now), writers)
		})
		b.Run(fmt.Sprintf("readable/writers=%d", writers), func(b *testing.B) {
			url, store := nodetest.BenchStore(b)
			ctx, cancel := context.WithCancel(b.Context())
			progress, live := projections.NewProgress(models.All(), 0), snapshot.New(snapshot.Options{})
			var parts sync.WaitGroup
			parts.Go(func() { live.Run(ctx, store, progress.SnapshotReached, nodetest.Log(b)) })
			parts.Go(func() { _ = projections.Run(ctx, url, store, models.All(), progress, nodetest.Log(b)) })
			w := writer.NewWriter(store, progress.Wait, writer.NoQuotas{}, time.Now)
			createFlag(b, w, "warm")
			benchCommands(b, w, writers)
			cancel()
			parts.Wait()
		})
	}
}

func createFlag(b *testing.B, w *writer.Writer, key string) {
	_, _, err := writer.Do(b.Context(), w, writer.By{},
		commands.CreateFlag{TenantID: "t", Key: key, ID: commands.NewID(), Type: events.BooleanFlag, Salt: "s"})
	if err != nil {
		b.Error(err)
	}
}

func benchCommands(b *testing.B, w *writer.Writer, writers int) {
	var took nodetest.Samples
	var next atomic.Int64
	b.ResetTimer()
	began := time.Now()
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				start := time.Now()
				createFlag(b, w, "flag-"+strconv.FormatInt(n, 10))
				took.Add(time.Since(start))
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "writes/s")
	took.Report(b, 50)
	took.Report(b, 99)
}

// benchEvents returns the size of the log for rebuilds, FLAGLEDGER_BENCH_EVENTS or 500,000.
func benchEvents() int {
	n, err := strconv.Atoi(os.Getenv("FLAGLEDGER_BENCH_EVENTS"))
	if err != nil {
		return 500_000
	}
	return n
}

// BenchmarkRebuild rebuilds a read model from a log of 500,000 events. heap-MB is the largest heap meanwhile. The rows
// are compared with an earlier benchmark's.
func BenchmarkRebuild(b *testing.B) {
	url, store := nodetest.BenchStore(b)
	n := benchEvents()
	nodetest.Seed(b, store, n/5)
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command does
	rebuild := func(list ...projections.Projection) func(b *testing.B) {
		return func(b *testing.B) {
			stop := make(chan struct{})
			heap := make(chan uint64)
			go func() { heap <- nodetest.LargestHeap(stop) }()
			began := time.Now()
			for b.Loop() {
				if err := projections.Rebuild(
					b.Context(), url, store, list, projections.RebuildOptions{}, nodetest.Log(b),
				); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*b.N)/time.Since(began).Seconds(), "events/s")
			close(stop)
			b.ReportMetric(float64(<-heap)/(1<<20), "heap-MB")
		}
	}
	for _, p := range models.All() {
		b.Run(p.Name, rebuild(p))
	}
	b.Run("all", rebuild(models.All()...))
}

// BenchmarkStart measures the time from the start to evaluation, over a log of 100,000 facts.
func BenchmarkStart(b *testing.B) {
	url, store := nodetest.BenchStore(b)
	nodetest.Seed(b, store, 20_000)
	b.Run("facts=100000", func(b *testing.B) {
		for b.Loop() {
			n, err := node.Start(b.Context(),
				settings.Config{PublicURL: "http://localhost", Environment: "development", Secret: nodetest.Secret, Now: time.Now}, url,
				nodetest.Log(b))
			if err != nil {
				b.Fatal(err)
			}
			<-n.Ready
			b.StopTimer()
			n.Stop()
			b.StartTimer()
		}
	})
}

// BenchmarkSnapshotLag measures the time from an acknowledged append until the same node's snapshot holds it.
func BenchmarkSnapshotLag(b *testing.B) {
	_, store := nodetest.BenchStore(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	reached := make(chan events.Position, 1000)
	live := snapshot.New(snapshot.Options{})
	go live.Run(ctx, store, func(page events.Page) { reached <- page.Next }, nodetest.Log(b))
	<-live.Ready()
	var took nodetest.Samples
	revision := events.Revision(0)
	for b.Loop() {
		e := events.Event{ID: uuid.Must(uuid.NewV7()), Fact: events.ProjectUpdated{}}
		appended, err := store.Append(b.Context(), "project-p", revision, []events.Event{e})
		if err != nil {
			b.Fatal(err)
		}
		revision++
		acknowledged := time.Now()
		for p := range reached {
			if p.Compare(appended.Position) >= 0 {
				break
			}
		}
		took.Add(time.Since(acknowledged))
	}
	took.Report(b, 50)
	took.Report(b, 99)
}
