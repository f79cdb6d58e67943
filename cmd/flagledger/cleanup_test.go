package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

func TestWhatCanGoIsPrinted(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	settings := []string{"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t), "FLAGLEDGER_STALE_AFTER=1s"}
	i.Serve(settings...)
	c := i.Service().SignUp("me@example.com")
	cleanup := func(arguments ...string) ran { return run(i, settings, append([]string{"cleanup"}, arguments...)...) }
	i.Service().Eventually("the tenant is listed", func() bool { return cleanup("--tenant", c.Tenant).code == 0 })
	if got := cleanup("--tenant", c.Tenant).succeeded().stdout; got != "No flag is unused or settled.\n" {
		t.Errorf("without flags it prints %q", got)
	}
	c.CreateFlag("old-banner", nil)
	c.CreateFlag("old-checkout", nil)
	var shown []map[string]any
	i.Service().Eventually("the flags are old enough", func() bool {
		shown = c.Call("GET", "/api/v1/cleanup", nil).Want(200).List()
		return len(shown) == 2
	})
	var printed []map[string]any
	if err := json.Unmarshal([]byte(cleanup("--tenant", c.Tenant, "--json").succeeded().stdout), &printed); err != nil ||
		!reflect.DeepEqual(printed, shown) {
		t.Errorf("it prints %v, %v, and the API shows %v", printed, err, shown)
	}
	lines := strings.Split(strings.TrimSpace(cleanup("--tenant", c.Tenant).succeeded().stdout), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "FLAG ") ||
		strings.Join(strings.Fields(lines[1])[:2], " ") != "old-banner unused" {
		t.Errorf("for people it prints %q", lines)
	}
	cleanup("--tenant", "nobody").refused("nobody")
	cleanup().refused("--tenant")
}
