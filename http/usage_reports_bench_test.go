package http_test

import (
	"fmt"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/http/rest"
)

// BenchmarkReportUsage measures a report of an edge: rows for 1, 100 and 10,000 flags.
func BenchmarkReportUsage(b *testing.B) {
	me := nodetest.New(b).SignUp("me@example.com")
	flags := appendFlags(me, 10_000)
	_, key := createKey(me, "server", nil)
	for _, rows := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint("rows=", rows), func(b *testing.B) {
			var counts []map[string]any
			for _, flag := range flags[:rows] {
				counts = append(counts, map[string]any{"flagKey": flag, "value": false, "count": 1000})
			}
			n := 0
			for b.Loop() {
				n++
				id := fmt.Sprint(time.Now().UnixNano(), ".", n)
				key.Call("POST", rest.UsageRoute, reportOf(id, counts...)).Want(202)
			}
		})
	}
}
