package http_test

import (
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/projections/snapshot/evaluation"
)

// BenchmarkToggleBesideFlush toggles a flag while another tenant's 20,000 flags are evaluated every second, so that all
// usage is written every five seconds. In turn, it toggles without evaluations: ten seconds each, twice.
func BenchmarkToggleBesideFlush(b *testing.B) {
	me := nodetest.New(b).SignUp("me@example.com")
	keys := appendFlags(me, 20_000)
	used, _ := me.Service.Node.API.Live.Tenant(me.Tenant)
	environment, _ := used.Environment("production")
	evaluations := 0
	evaluate := func() {
		for _, key := range keys {
			flag, _ := used.Flag(key)
			r, err := flag.Evaluate(environment.ID, &evaluation.Context{})
			if err != nil {
				b.Fatal(err)
			}
			me.Service.Node.API.Meter.Count(used.ID(), flag.Usage(), environment.ID, &r, "")
			evaluations++
		}
	}
	t := newToggler(b, me.NewTenant("beside"), "beside")
	var alone, beside samples
	toggle := func(into *samples, eachSecond func()) {
		t.took.List = nil
		for range 10 {
			eachSecond()
			for end := time.Now().Add(time.Second); time.Now().Before(end); {
				t.toggle()
			}
		}
		into.List = append(into.List, t.took.List...)
	}
	for b.Loop() {
		for range 2 {
			toggle(&alone, func() {})
			toggle(&beside, evaluate)
			// nothing is left to write in the next ten seconds
			wantCounts(me, tenantMetricsPath(me, ""), evaluations, 0)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(beside.List)), "samples")
	b.ReportMetric(float64(alone.Percentile(99).Microseconds())/1000, "alone-p99-ms")
	beside.Report(b, 99)
	b.ReportMetric(beside.over(&alone, 50), "p50-times-alone")
	b.ReportMetric(beside.over(&alone, 99), "p99-times-alone")
}
