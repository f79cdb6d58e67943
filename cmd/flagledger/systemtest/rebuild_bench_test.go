package systemtest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
)

// BenchmarkRebuildBeside rebuilds all read models (FLAGLEDGER_BENCH_EVENTS events) beside a node with callers, normally
// and at full speed. It measures the durations of calls, and their ratio to earlier ones. stopped-ms is the longest
// time for which a switch stopped the live projector.
func BenchmarkRebuildBeside(b *testing.B) {
	c := nodetest.New(b).SignUp("me@example.com")
	c.CreateEnabledFlag("on", nil)
	c.CreateFlag("busy", nil)
	nodetest.Seed(b, c.Service.Store(), benchEvents()/5)
	settled(c.Service)
	p, settings := nodetest.Build(b), []string{"FLAGLEDGER_DATABASE_URL=" + c.Service.DatabaseURL}
	for _, options := range [][]string{nil, {"--full-speed"}} {
		b.Run(strings.Join(append(options, "beside"), " "), func(b *testing.B) {
			for b.Loop() {
				quiet := measureCalls(b, c, func() { time.Sleep(10 * time.Second) })
				var output []byte
				began := time.Now()
				beside := measureCalls(b, c, func() {
					var err error
					if output, err = p.Command(settings, append([]string{"projections", "rebuild", "--all"}, options...)...).
						CombinedOutput(); err != nil {
						b.Fatalf("%v\n%s", err, output)
					}
				})
				b.ReportMetric(float64(benchEvents())/time.Since(began).Seconds(), "events/s")
				for name := range quiet {
					b.Logf("%s: before %v; beside %v", name, quiet[name], beside[name])
					before, during := quiet[name].Percentile(99), beside[name].Percentile(99)
					b.ReportMetric(during.Seconds()*1000, name+"-p99-ms")
					b.ReportMetric(during.Seconds()/before.Seconds(), name+"-p99-times")
				}
				var longest time.Duration
				for _, match := range stopTime.FindAllSubmatch(output, -1) {
					if stopped, err := time.ParseDuration(string(match[1])); err == nil {
						longest = max(longest, stopped)
					}
				}
				b.ReportMetric(longest.Seconds()*1000, "stopped-ms")
			}
		})
	}
}

// measureCalls has callers toggle a flag, list flags and evaluate one, each up to a hundred times a second, while run
// runs.
func measureCalls(b *testing.B, c *nodetest.Client, run func()) map[string]*nodetest.Samples {
	ctx, cancel := context.WithCancel(b.Context())
	calls := map[string]func(n int) nodetest.Reply{
		"toggle": func(n int) nodetest.Reply {
			return c.Attempt("POST", nodetest.FlagPath("busy", []string{"/enable", "/disable"}[n%2]), "")
		},
		"list":     func(int) nodetest.Reply { return c.Attempt("GET", "/api/v1/flags", "") },
		"evaluate": func(int) nodetest.Reply { return c.Attempt("POST", nodetest.FlagPath("on", "/evaluate"), `{}`) },
	}
	took := map[string]*nodetest.Samples{}
	var callers sync.WaitGroup
	for name, call := range calls {
		samples := &nodetest.Samples{}
		took[name] = samples
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := call(n)
				samples.Add(r.Took)
				if r.Status != 200 {
					b.Errorf("%s: %v", name, r)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	run()
	cancel()
	callers.Wait()
	return took
}
