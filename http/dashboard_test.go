package http_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
	"flagledger/http/dashboard"
)

// A browser that opens the service's address is led to the dashboard. All others get JSON there.
func TestTheAddressLeadsToTheDashboard(t *testing.T) {
	t.Parallel()
	nodetest.RunOnce(t)
	s := nodetest.Shared(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for accept, want := range map[string][2]any{
		"text/html,application/xhtml+xml,*/*;q=0.8": {302, "/app"},
		"application/json":                          {200, ""},
		"*/*":                                       {200, ""},
		"":                                          {200, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		nodetest.Same(t, "Accept: "+accept, []any{answer.StatusCode, answer.Header.Get("Location"), answer.Header.Values("Vary")}, []any{want[0], want[1], []string{"Accept"}})
	}
}

// People use the dashboard in a browser: the stories are in dashboard/stories.
func TestTheDashboardInABrowser(t *testing.T) {
	t.Parallel()
	nodetest.RunOnce(t)
	s := nodetest.Shared(t)
	chromium, err := exec.LookPath("chromium")
	tooltest.Require(t, "chromium", err)
	if !dashboard.Built() {
		tooltest.Require(t, "dashboard", errors.New("the tests were built without it: make dashboard"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "node", "dashboard/stories/run.mjs")
	command.Env = append(os.Environ(), "CHROMIUM="+chromium, "SERVICE_URL="+s.URL)
	out, err := command.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
