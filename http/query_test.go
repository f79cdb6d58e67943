package http_test

import (
	"net/http"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// All but the first would be ignored.
func TestReadsRefuseAParameterThatIsSentTwice(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	me.CreateFlag("k", nil)
	for path, wrong := range map[string][]string{
		"/api/v1/flags?tag=a&tag=b":                                         {"tag"},
		"/api/v1/flags?limit=1&limit=0&type=x":                              {"limit", "type"},
		"/api/v1/projects?at=2026-01-02T03:04:05Z&at=2026-01-02T03:04:05Z":  {"at"},
		nodetest.FlagPath("k", "?version=1&version=1"):                      {"version"},
		nodetest.FlagPath("k", "/rules?version=1&version=1"):                {"version"},
		nodetest.FlagPath("k", "/variations?limit=1&limit=2"):               {"limit"},
		nodetest.FlagPath("k", "/versions?offset=0&offset=1"):               {"offset"},
		nodetest.FlagPath("k", "/diff?from=1&to=1&to=1"):                    {"to"},
		nodetest.FlagPath("k", "/history?action=created&action=x&from=a"):   {"action", "from"},
		nodetest.FlagPath("k", "/metrics?interval=day&interval=day"):        {"interval"},
		"/api/v1/audit?action=flag.created&action=flag.created":             {"action"},
		"/api/v1/audit/proof?flag=k&version=1&version=1":                    {"version"},
		"/api/v1/notifications?unreadOnly=true&unreadOnly=false":            {"unreadOnly"},
		"/api/v1/tenants/" + me.Tenant + "/users?limit=1&limit=1&offset=-1": {"limit", "offset"},
	} {
		me.Call(http.MethodGet, path, nil).Refused(422, wrong...)
	}
	me.Call(http.MethodGet, "/api/flags/k/history?action=created&action=created", nil).Want(200)
}
