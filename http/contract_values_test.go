package http_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// statedValues are the values that the interface lists for a member of a request body.
var statedValues = []struct{ name, member, values string }{
	{"POST /api/v1/oauth/token", "grant_type", "client_credentials"},
	{"POST /oauth/token", "grant_type", "client_credentials"},
	{"POST /api/v1/flags", "type", "boolean string number json"},
	{"POST /api/v1/flags/projects/{projectId}/flags", "type", "boolean string number json"},
	{"PATCH /api/v1/flags/projects/{projectId}/flags/{flagKey}", "status", "active inactive archived"},
	{"POST /api/v1/tenants/{tenantId}/users", "role", "admin developer viewer"},
	{"POST /api/v1/billing/checkout", "type", "subscription payment"},
	{"POST /api/v1/billing/checkout", "planId", "standard enhanced enterprise sandbox"},
	{"POST /api/billing/checkout", "type", "subscription payment"},
	{"POST /api/billing/checkout", "planId", "free standard premium"},
	{"POST /api/v1/oauth/clients", "scopes", "flags:read flags:write flags:evaluate flags:sync projects:read projects:write"},
	{"PATCH /api/v1/admin/users/{userId}/role", "role", "viewer admin super_user"},
	{"POST /api/v1/admin/invitations", "role", "viewer admin"},
	{"POST /admin/invite", "role", "admin user"},
	{"PATCH /admin/users/{userId}/role", "role", "super_admin vendor_support"},
	{"POST /admin/invitations", "role", "super_admin vendor_support"},
}

func TestTheDocumentListsTheStatedValues(t *testing.T) {
	t.Parallel()
	whole, operations := nodetest.Shared(t).Anonymous().Document()
	for _, stated := range statedValues {
		var listed []string
		for _, content := range object(object(operations[stated.name]["requestBody"])["content"]) {
			for _, schema := range bodySchemas(whole, object(object(content)["schema"])) {
				member := resolve(whole, object(object(schema["properties"])[stated.member]))
				if items := object(member["items"]); items != nil {
					member = resolve(whole, items)
				}
				for _, value := range list(member["enum"]) {
					if text, ok := value.(string); ok && !slices.Contains(listed, text) {
						listed = append(listed, text)
					}
				}
			}
		}
		want := strings.Fields(stated.values)
		slices.Sort(want)
		slices.Sort(listed)
		if !slices.Equal(listed, want) {
			t.Errorf("%s takes as %s %v, by the document %v", stated.name, stated.member, want, listed)
		}
	}
}

// bodySchemas returns the alternative schemas of a body.
func bodySchemas(whole, schema map[string]any) (ways []map[string]any) {
	schema = resolve(whole, schema)
	for _, way := range list(schema["oneOf"]) {
		ways = append(ways, bodySchemas(whole, object(way))...)
	}
	return append(ways, schema)
}

// The document states the interface's default for each optional member.
func TestTheDocumentShowsTheStatedDefaults(t *testing.T) {
	t.Parallel()
	_, operations := nodetest.Shared(t).Anonymous().Document()
	for _, old := range []string{"GET /api/v1/notifications", "GET /api/notifications"} {
		got := map[string]any{}
		for _, p := range asMaps(operations[old]["parameters"]) {
			if value := object(p["schema"])["default"]; p["in"] == "query" && value != nil {
				got[p["name"].(string)] = value
			}
		}
		nodetest.Same(t, "the defaults of "+old, got, map[string]any{"limit": 20, "offset": 0, "unreadOnly": false})
	}
}

// The document describes the parameters of usage lists and metrics, with their defaults.
func TestTheDocumentShowsTheUseOfFlags(t *testing.T) {
	t.Parallel()
	_, operations := nodetest.Shared(t).Anonymous().Document()
	const ofMetrics = "from to interval=hour(hour,day) environment"
	for operation, want := range map[string]string{
		"GET /api/v1/flags": "lifecycle(archived,new,unused,settled,live) evaluatedBefore " +
			"sort=key(key,-key,createdAt,-createdAt,updatedAt,-updatedAt,lastEvaluatedAt,-lastEvaluatedAt)",
		"GET /api/v1/flags/{flagKey}/metrics":    ofMetrics,
		"GET /api/v1/tenants/{tenantId}/metrics": ofMetrics,
		"GET /api/v1/cleanup":                    "limit offset",
		"POST /api/v1/flags/{flagKey}/evaluate":  "at version explain preview",
		"POST /api/flags/{flagKey}/evaluate":     "at version explain preview",
		"POST /api/v1/flags/evaluate":            "at preview",
	} {
		shown := map[string]bool{}
		for _, p := range asMaps(operations[operation]["parameters"]) {
			if p["in"] != "query" {
				continue
			}
			schema := object(p["schema"])
			text := p["name"].(string)
			shown[text] = true
			if value := schema["default"]; value != nil {
				text += fmt.Sprint("=", value)
			}
			if values := list(schema["enum"]); len(values) > 0 {
				text += "(" + strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ",") + ")"
			}
			shown[text] = true
		}
		for _, parameter := range strings.Fields(want) {
			if !shown[parameter] {
				t.Errorf("%s does not show %s", operation, parameter)
			}
		}
	}
}
