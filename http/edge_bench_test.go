package http_test

import (
	"path/filepath"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// BenchmarkEdgeStart starts an edge of 20,000 flags until it is healthy: without the service from its copy on disk, and,
// as "first-ms", without a copy from the service.
func BenchmarkEdgeStart(b *testing.B) {
	me := nodetest.New(b).SignUp("me@example.com")
	keys := appendFlags(me, 20_000)
	_, key := createKey(me, "server", map[string]any{"edge": true})
	program := nodetest.Build(b)
	var first, fromDisk nodetest.Samples
	for b.Loop() {
		i := program.In(b)
		edge := i.Edge(me.Service.URL, key.Token)
		first.Add(edge.Took)
		i.Service().Eventually("the edge has written its copy", func() bool {
			copies, _ := filepath.Glob(filepath.Join(i.Dir, "*.feed"))
			return len(copies) > 0
		})
		edge.Kill()
		edge = i.Edge("http://"+nodetest.FreeAddress(b), key.Token)
		fromDisk.Add(edge.Took)
		i.Service().Anonymous().WithToken(key.Token).
			Call("POST", "/api/v1/flags/"+keys[len(keys)-1]+"/evaluate", `{"targetingKey":"u"}`).Want(200)
		edge.Kill()
	}
	fromDisk.Report(b, 50)
	b.ReportMetric(float64(first.Percentile(50).Milliseconds()), "first-ms")
}
