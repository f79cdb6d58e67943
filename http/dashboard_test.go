package http_test

import (
	"net/http"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
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
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/", nil)
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
