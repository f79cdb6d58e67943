package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/snapshot"
)

// benchStore is an event store with an empty log.
func benchStore(b *testing.B) (string, *postgres.Store) {
	b.Helper()
	url := pgtest.URL(b)
	if err := prepare(b.Context(), url, testLog(b)); err != nil {
		b.Fatal(err)
	}
	store, err := postgres.Open(b.Context(), url, testLog(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	return url, store
}

// samples collects durations from several goroutines.
type samples struct {
	mu   sync.Mutex
	list []time.Duration
}

func (s *samples) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, d)
}

func (s *samples) percentile(percent int) time.Duration {
	slices.Sort(s.list)
	return s.list[min(len(s.list)*percent/100, len(s.list)-1)]
}

// report adds a percentile to a benchmark's figures, in milliseconds.
func (s *samples) report(b *testing.B, percent int) {
	b.ReportMetric(float64(s.percentile(percent).Microseconds())/1000, fmt.Sprintf("p%d-ms", percent))
}

// BenchmarkCommand is a durable write through a command: read the stream, decide, append. "readable" includes the wait for read models
// and snapshot, as a caller of the API has it.
func BenchmarkCommand(b *testing.B) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("durable/writers=%d", writers), func(b *testing.B) {
			_, store := benchStore(b)
			benchCommands(b, &commands.Writer{Store: store, Await: func(context.Context, events.Position, []string) bool { return true }}, writers)
		})
		b.Run(fmt.Sprintf("readable/writers=%d", writers), func(b *testing.B) {
			url, store := benchStore(b)
			ctx, cancel := context.WithCancel(b.Context())
			progress, live := projections.NewProgress(models.All()), snapshot.New()
			var parts sync.WaitGroup
			parts.Go(func() { live.Run(ctx, store, progress.SnapshotReached, testLog(b)) })
			parts.Go(func() { _ = projections.Run(ctx, url, store, models.All(), progress, testLog(b)) })
			w := &commands.Writer{Store: store, Await: progress.Wait}
			switchOn(b, w, "warm")
			benchCommands(b, w, writers)
			cancel()
			parts.Wait()
		})
	}
}

func switchOn(b *testing.B, w *commands.Writer, key string) {
	_, _, err := commands.Do(b.Context(), w, commands.By{}, commands.CreateFlag{TenantID: "t", Key: key, ID: commands.NewID(), Type: events.BooleanFlag, Salt: "s"})
	if err != nil {
		b.Error(err)
	}
}

func benchCommands(b *testing.B, w *commands.Writer, writers int) {
	var took samples
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
				switchOn(b, w, "flag-"+strconv.FormatInt(n, 10))
				took.add(time.Since(start))
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "writes/s")
	took.report(b, 50)
	took.report(b, 99)
}

// seed appends five facts to each of n flags.
func seed(b *testing.B, store events.Store, n int) {
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
					events.FlagCreated{TenantID: "t", Key: key, ID: key, Name: key, Type: events.BooleanFlag, DefaultValue: json.RawMessage("false"), Salt: "s", Tags: []string{"web"}},
					events.FlagEnabled{Environment: environment},
					events.FlagUpdated{Description: &events.Change[string]{To: "What it is for"}},
					events.VariationAdded{Variation: events.Variation{ID: key, Name: "on", Value: json.RawMessage("true"), Weight: 1000}},
					events.FlagDisabled{Environment: environment},
				}
				batch := make([]events.Event, len(facts))
				for i, fact := range facts {
					batch[i] = events.Event{ID: uuid.Must(uuid.NewV7()), Fact: fact, Metadata: events.Metadata{Time: time.Now().UTC(), Actor: events.Actor{Kind: events.UserActor, ID: "u1"}}}
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

// benchEvents is the size of the log that is rebuilt from, FLAGLEDGER_BENCH_EVENTS or 500,000.
func benchEvents() int {
	n, err := strconv.Atoi(os.Getenv("FLAGLEDGER_BENCH_EVENTS"))
	if err != nil {
		return 500_000
	}
	return n
}

// BenchmarkRebuild makes a read model anew from a log of 500,000 events. heap-MB is the largest heap seen meanwhile.
func BenchmarkRebuild(b *testing.B) {
	url, store := benchStore(b)
	n := benchEvents()
	seed(b, store, n/5)
	rebuild := func(list ...projections.Projection) func(b *testing.B) {
		return func(b *testing.B) {
			stop := make(chan struct{})
			heap := make(chan uint64)
			go func() { heap <- largestHeap(stop) }()
			began := time.Now()
			for b.Loop() {
				if err := projections.Rebuild(b.Context(), url, store, list, nil, testLog(b)); err != nil {
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

func largestHeap(stop <-chan struct{}) (largest uint64) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var stats runtime.MemStats
	for {
		select {
		case <-tick.C:
			runtime.ReadMemStats(&stats)
			largest = max(largest, stats.HeapInuse)
		case <-stop:
			return largest
		}
	}
}

// BenchmarkStart is the time from nothing to evaluating flags, over a log of 100,000 facts and over one of 100,000 flags.
func BenchmarkStart(b *testing.B) {
	url, store := benchStore(b)
	seed(b, store, 20_000)
	b.Run("facts=100000", func(b *testing.B) {
		for b.Loop() {
			n, err := start(b.Context(), config{PublicURL: "http://localhost", Environment: "development"}, url, testLog(b))
			if err != nil {
				b.Fatal(err)
			}
			<-n.ready
			b.StopTimer()
			n.stop()
			b.StartTimer()
		}
	})
}

// BenchmarkSnapshotLag is the time from an acknowledged append to the snapshot of the same node holding it.
func BenchmarkSnapshotLag(b *testing.B) {
	_, store := benchStore(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	reached := make(chan events.Position, 1000)
	live := snapshot.New()
	go live.Run(ctx, store, func(p events.Position) { reached <- p }, testLog(b))
	<-live.Ready()
	var took samples
	revision := events.Revision(0)
	for b.Loop() {
		e := events.Event{ID: uuid.Must(uuid.NewV7()), Fact: events.ProjectUpdated{}}
		position, err := store.Append(b.Context(), "project-p", revision, []events.Event{e})
		if err != nil {
			b.Fatal(err)
		}
		revision++
		acknowledged := time.Now()
		for p := range reached {
			if p.Compare(position) >= 0 {
				break
			}
		}
		took.add(time.Since(acknowledged))
	}
	took.report(b, 50)
	took.report(b, 99)
}

// BenchmarkTokens is 10,000 requests to the token endpoint. heap-B/request is what of one stays in memory.
func BenchmarkTokens(b *testing.B) {
	const requests = 10_000
	me := newService(b).signUp("me@example.com")
	id, secret := me.oauthClient("x", "flags:evaluate")
	form := credentials(id, secret)
	me.trade(form...).want(200)
	heap := func() float64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	before := heap()
	for b.Loop() {
		for range requests {
			me.trade(form...).want(200)
		}
	}
	made := float64(b.N) * requests
	b.ReportMetric((heap()-before)/made, "heap-B/request")
	b.ReportMetric(b.Elapsed().Seconds()*1e6/made, "us/request")
}
