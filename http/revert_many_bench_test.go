package http_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// BenchmarkRevertMany reverts many changed flags, call by call, while another tenant toggles a flag. It compares those
// toggles with earlier ones.
func BenchmarkRevertMany(b *testing.B) {
	const flags = 2_000
	me := nodetest.New(b).SignUp("me@example.com")
	other := newToggler(b, me.Service.SignUp("other@example.com"), "k")
	keys := appendFlags(me, flags)
	at, store := now(), me.Service.Store()
	var all errgroup.Group
	all.SetLimit(64)
	for _, key := range keys {
		all.Go(func() error {
			return appendFact(me, store, key, 1, events.FlagUpdated{Description: &events.Change[string]{To: "changed"}})
		})
	}
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
	other.warm()
	for range 300 {
		other.toggle()
	}
	quiet := other.took.Percentile(99)
	other.took.List = nil
	var calls nodetest.Samples
	began, reverted := time.Now(), 0
	stop := make(chan struct{})
	var switching errgroup.Group
	switching.Go(func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
				other.toggle()
			}
		}
	})
	for cursor := "null"; cursor != ""; {
		r := me.Attempt("POST", revertPath, fmt.Sprintf(`{"at":%q,"cursor":%s}`, at, cursor))
		var answer struct {
			Reverted []string
			Cursor   *string
		}
		if err := json.Unmarshal([]byte(r.Body), &answer); err != nil || r.Status != 200 {
			b.Fatal(r)
		}
		calls.Add(r.Took)
		reverted += len(answer.Reverted)
		if cursor = ""; answer.Cursor != nil {
			cursor = fmt.Sprintf("%q", *answer.Cursor)
		}
	}
	took := time.Since(began)
	close(stop)
	_ = switching.Wait()
	if reverted != flags {
		b.Fatalf("%d flags were brought back", reverted)
	}
	b.ReportMetric(float64(reverted)/took.Seconds(), "flags/s")
	b.ReportMetric(float64(quiet.Microseconds())/1000, "p99-before-ms")
	other.took.Report(b, 50)
	other.took.Report(b, 99)
	b.ReportMetric(calls.Percentile(100).Seconds(), "longest-call-s")
}
