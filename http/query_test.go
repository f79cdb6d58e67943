package http_test

import (
	"net/http"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// Further values would be ignored.
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

// An empty parameter would count as absent: `sort=` would return the order of keys, as if requested.
func TestReadsRefuseAnEmptyParameter(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	me.CreateFlag("k", nil)
	project := me.Call("POST", "/api/v1/projects", map[string]any{"name": "P"}).Want(201).Object()["id"].(string)
	for path, names := range map[string][]string{
		"/api/v1/flags":                             {"type", "status", "enabled", "tag", "sort", "lifecycle", "evaluatedBefore", "projectId", "limit", "offset", "at"},
		nodetest.ProjectFlagsPath(project):          {"sort", "limit"},
		"/api/v1/projects":                          {"limit", "offset", "at"},
		nodetest.FlagPath("k"):                      {"at", "version"},
		nodetest.FlagPath("k", "/history"):          {"action", "userId", "environment", "from", "to", "limit"},
		nodetest.FlagPath("k", "/metrics"):          {"from", "to", "interval", "environment"},
		"/api/v1/tenants/" + me.Tenant + "/metrics": {"from", "to", "interval", "environment"},
		"/api/v1/cleanup":                           {"limit", "offset"},
		"/api/v1/tags":                              {"limit", "offset"},
		"/api/v1/audit":                             {"action", "userId", "resourceType", "resourceId", "environment", "from", "to", "limit", "cursor"},
		"/api/v1/audit/export":                      {"format", "after"},
		"/api/v1/notifications":                     {"limit", "offset", "unreadOnly", "cursor"},
	} {
		for _, name := range names {
			me.Call(http.MethodGet, path+"?"+name+"=", nil).Refused(422, name)
		}
		me.Call(http.MethodGet, path+"?"+strings.Join(names, "=&")+"=", nil).Refused(422, names...)
	}
	nodetest.Same(t, "what is wrong",
		me.Call(http.MethodGet, "/api/v1/flags?sort=&lifecycle", nil).Refused(422, "sort", "lifecycle").Object()["errors"],
		map[string]any{"sort": "must not be empty", "lifecycle": "must not be empty"})
	me.Call(http.MethodGet, "/api/v1/flags?unknown=", nil).
		Refused(422, "unknown").
		Shows(map[string]any{"errors": map[string]any{"unknown": "unknown query parameter"}})
	for _, tail := range []string{"/evaluate?at=", "/evaluate?explain=", "/evaluate?version="} {
		_, parameter, _ := strings.Cut(strings.TrimSuffix(tail, "="), "?")
		me.Call("POST", nodetest.FlagPath("k", tail), map[string]any{}).Refused(422, parameter)
	}
	me.Call(http.MethodGet, "/api/v1/flags?q=", nil).Want(200)
	me.Call(http.MethodGet, "/api/v1/audit?q=", nil).Want(200)
	me.Lenient().Call(http.MethodGet, "/api/flags?sort=", nil).Want(200)
}
