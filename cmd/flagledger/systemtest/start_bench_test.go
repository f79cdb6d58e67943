package systemtest

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// startMiB is the size of BenchmarkStartFromDisk's facts in MiB. FLAGLEDGER_START_MIB=1024 raises it.
func startMiB(b *testing.B) int {
	text := os.Getenv("FLAGLEDGER_START_MIB")
	if text == "" {
		return 32
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatalf("FLAGLEDGER_START_MIB: %v", err)
	}
	return n
}

// BenchmarkStartFromDisk measures the time from the start to evaluation with a current snapshot on disk. "first-s" is
// the time of the previous start, which reads the whole log.
func BenchmarkStartFromDisk(b *testing.B) {
	url, store := nodetest.BenchStore(b)
	mebibytes := startMiB(b)
	seedLarge(b, store, mebibytes<<20)
	config := settings.Config{
		PublicURL:   "http://localhost",
		Environment: "development",
		Secret:      nodetest.Secret,
		Data:        b.TempDir(),
		Now:         time.Now,
	}
	start := func() *node.Node {
		n, err := node.Start(b.Context(), config, url, nodetest.Log(b))
		if err != nil {
			b.Fatal(err)
		}
		<-n.Ready
		return n
	}
	began := time.Now()
	first := start()
	took := time.Since(began)
	first.Stop() // writes the snapshot
	for b.Loop() {
		n := start()
		b.StopTimer()
		n.Stop()
		b.StartTimer()
	}
	b.ReportMetric(took.Seconds(), "first-s")
	b.ReportMetric(float64(mebibytes), "MiB-of-facts")
}

// seedLarge appends flags with a value of 8 KB of the given total size, and changes each of them twice.
func seedLarge(b *testing.B, store events.Store, bytes int) {
	b.Helper()
	const size = 8 << 10
	value := func(letter string) json.RawMessage {
		return json.RawMessage(`"` + strings.Repeat(letter, size-2) + `"`)
	}
	facts := []events.Fact{
		events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{From: value("a"), To: value("b")}},
		events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{From: value("b"), To: value("c")}},
	}
	var next atomic.Int64
	var writing sync.WaitGroup
	for range 16 {
		writing.Go(func() {
			for i := next.Add(1); int(i)*5*size <= bytes; i = next.Add(1) {
				key := "flag-" + strconv.FormatInt(i, 10)
				var batch []events.Event
				for _, fact := range append([]events.Fact{events.FlagCreated{TenantID: "t", Key: key, ID: key, Name: key, Type: events.StringFlag, DefaultValue: value("a"), Salt: "s"}}, facts...) {
					batch = append(
						batch,
						events.Event{
							ID:       uuid.Must(uuid.NewV7()),
							Fact:     fact,
							Metadata: events.Metadata{Time: time.Now().UTC(), Actor: events.Actor{Kind: events.UserActor, ID: "u1"}},
						},
					)
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
