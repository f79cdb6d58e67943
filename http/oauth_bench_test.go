package http_test

import (
	"runtime"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// BenchmarkTokens makes 10,000 token requests. heap-B/request is the memory that each leaves behind.
func BenchmarkTokens(b *testing.B) {
	const requests = 10_000
	me := nodetest.New(b).SignUp("me@example.com")
	id, secret := me.OAuthClient("x", "flags:evaluate")
	form := nodetest.Credentials(id, secret)
	me.Trade(form...).Want(200)
	heap := func() float64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	before := heap()
	for b.Loop() {
		for range requests {
			me.Trade(form...).Want(200)
		}
	}
	made := float64(b.N) * requests
	b.ReportMetric((heap()-before)/made, "heap-B/request")
	b.ReportMetric(b.Elapsed().Seconds()*1e6/made, "us/request")
}
