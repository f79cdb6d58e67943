package http_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// BenchmarkDashboard opens the page of a tenant's 20,000 flags in a new browser, searches it, and toggles a flag that
// another person sees too.
func BenchmarkDashboard(b *testing.B) {
	chromium := findBrowser(b)
	me := nodetest.New(b).SignUp("me@example.com")
	appendFlags(me, 20_000)
	var medians map[string]float64
	for b.Loop() {
		command := exec.CommandContext(b.Context(), "node", "dashboard/stories/speed.mjs")
		command.Env = append(os.Environ(), "CHROMIUM="+chromium, "SERVICE_URL="+me.Service.URL, "EMAIL=me@example.com",
			"PASSWORD="+nodetest.Password, "TENANT="+me.Tenant, "ROUNDS=9")
		command.Stderr = os.Stderr
		out, err := command.Output()
		if err != nil {
			b.Fatal(err)
		}
		if err := json.Unmarshal(out, &medians); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, median := range medians {
		b.ReportMetric(median, name)
	}
}
