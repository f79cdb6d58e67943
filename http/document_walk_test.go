package http_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// walkSchema visits a schema and its parts. A place is written as in "[].flag.createdAt".
func walkSchema(whole, schema map[string]any, place string, visit func(place string, schema map[string]any)) {
	walkPart(whole, schema, place, nil, visit)
}

func walkPart(whole, schema map[string]any, place string, within []string, visit func(string, map[string]any)) {
	if ref, ok := schema["$ref"].(string); ok {
		if slices.Contains(within, ref) { // a schema that contains itself
			return
		}
		within = append(slices.Clone(within), ref)
		schema = resolve(whole, schema)
	}
	visit(place, schema)
	for name, property := range object(schema["properties"]) {
		walkPart(whole, object(property), place+"."+name, within, visit)
	}
	if items := object(schema["items"]); items != nil {
		walkPart(whole, items, place+"[]", within, visit)
	}
	if rest := object(schema["additionalProperties"]); rest != nil {
		walkPart(whole, rest, place+".*", within, visit)
	}
	for _, ways := range []string{"oneOf", "anyOf", "allOf"} {
		for _, way := range asMaps(schema[ways]) {
			walkPart(whole, way, place, within, visit)
		}
	}
}

// parameter is a parameter of an operation.
type parameter struct {
	operation, in string // in is path, query, header or body
	name          string // a place if it is in the body
	schema        map[string]any
}

// parameters lists all parameters in a fixed order.
func parameters(whole map[string]any, operations map[string]map[string]any) (all []parameter) {
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		for _, p := range asMaps(operations[name]["parameters"]) {
			schema := maps.Clone(object(p["schema"]))
			if p["example"] != nil {
				schema["example"] = p["example"]
			}
			all = append(all, parameter{name, p["in"].(string), p["name"].(string), schema})
		}
		content := object(object(operations[name]["requestBody"])["content"])
		for _, media := range slices.Sorted(maps.Keys(content)) {
			var members []parameter
			walkSchema(whole, object(object(content[media])["schema"]), "", func(place string, schema map[string]any) {
				if !slices.ContainsFunc(members, func(p parameter) bool { return p.name == place }) {
					members = append(members, parameter{name, "body", place, schema})
				}
			})
			slices.SortFunc(members, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
			all = append(all, members...)
		}
	}
	return all
}

// rowOf returns the interface's row of an operation, or of the current operation of a legacy path.
func rowOf(t *testing.T, name string) contractRow {
	t.Helper()
	for _, name := range []string{name, current(name)} {
		for _, row := range slices.Concat(contractRows, additionRows) {
			if row.name == name {
				return row
			}
		}
	}
	t.Fatalf("neither contractRows nor additionRows has a call of %s", name)
	return contractRow{}
}

// additionRows has a call of each addition, like contractRows.
var additionRows = []contractRow{
	{"PATCH /api/v1/tenants/{tenantId}/users/{userId}", "", `{"role":"admin"}`, 200, nil},
	{"GET /api/v1/evaluation-keys", "", "", 200, nil},
	{"POST /api/v1/evaluation-keys", "", `{"name":"Shop","kind":"browser","environment":"production","signed":true}`, 201, nil},
	{"GET /api/v1/evaluation-keys/{keyId}", "", "", 200, nil},
	{"PATCH /api/v1/evaluation-keys/{keyId}", "", `{"name":"Store"}`, 200, nil},
	{"POST /api/v1/evaluation-keys/{keyId}/rotate", "", `{"endNow":true}`, 200, nil},
	{"DELETE /api/v1/evaluation-keys/{keyId}", "", "", 204, nil},
	{"GET /api/v1/oauth/clients", "", "", 200, nil},
	{"POST /api/v1/oauth/clients/{clientId}/rotate", "", "", 200, nil},
	{"DELETE /api/v1/oauth/clients/{clientId}", "", "", 204, nil},
	{"GET /api/v1/segments", "", "", 200, nil},
	{"POST /api/v1/segments", "", `{"key":"new","rules":[{"conditions":[{"attribute":"plan","op":"in","values":["pro"]}]}]}`, 201, nil},
	{"GET /api/v1/segments/{segmentKey}", "", "", 200, nil},
	{"PATCH /api/v1/segments/{segmentKey}", "", `{"name":"n"}`, 200, nil},
	{"DELETE /api/v1/segments/{segmentKey}", "", "", 204, nil},
	{"GET /api/v1/segments/{segmentKey}/rules", "", "", 200, nil},
	{"PUT /api/v1/segments/{segmentKey}/rules", "", `{"rules":[]}`, 200, nil},
	{"GET /api/v1/segments/{segmentKey}/members", "", "", 200, nil},
	{"POST /api/v1/segments/{segmentKey}/members", "", `{"list":"included","add":["u"]}`, 200, nil},
	{"GET /api/v1/segments/{segmentKey}/flags", "", "", 200, nil},
	{"POST /api/v1/segments/{segmentKey}/check", "", `{"targetingKey":"u"}`, 200, nil},
	{"GET /api/v1/segments/{segmentKey}/history", "", "", 200, nil},
	{"GET /api/v1/segments/{segmentKey}/versions", "", "", 200, nil},
	{"GET /api/v1/segments/{segmentKey}/versions/{version}", "", "", 200, nil},
	{"GET /api/v1/segments/{segmentKey}/diff", "", "from=1&to=1", 200, nil},
	{"POST /api/v1/segments/{segmentKey}/revert", "", `{"version":1}`, 200, nil},
	{"POST /api/v1/segments/{segmentKey}/forget", "", "", 200, nil},
	{"GET /api/v1/cleanup", "", "", 200, nil},
	{"GET /api/v1/tags", "", "", 200, nil},
	{"GET /api/v1/config", "", "format=flagd", 200, nil},
	{"GET /api/v1/audit", "", "", 200, nil},
	{"GET /api/v1/audit/export", "", "", 200, nil},
	{"GET /api/v1/audit/facts", "", "", 200, nil},
	{"GET /api/v1/admin/audit", "", "", 200, nil},
	{"GET /api/v1/flags/{flagKey}/dependents", "", "", 200, nil},
	{"GET /api/v1/flags/{flagKey}/versions", "", "", 200, nil},
	{"GET /api/v1/flags/{flagKey}/versions/{version}", "", "", 200, nil},
	{"GET /api/v1/flags/{flagKey}/diff", "", "from=1&to=2", 200, nil},
	{"GET /api/v1/flags/{flagKey}/metrics", "", "", 200, nil},
	{"GET /api/v1/tenants/{tenantId}/metrics", "", "", 200, nil},
	{"POST /api/v1/flags/{flagKey}/revert", "", `{"version":1}`, 200, nil},
	{"POST /api/v1/flags/revert", "", `{"at":"<<now>>"}`, 200, nil},
	{"POST /api/v1/flags/evaluate", "", `{"targetingKey":"u"}`, 200, nil},
	{"GET /api/v1/flags/{flagKey}/rules", "", "", 200, nil},
	{"PUT /api/v1/flags/{flagKey}/rules", "", `{"rules":[]}`, 200, nil},
	{"GET /api/v1/flags/{flagKey}/prerequisites", "", "", 200, nil},
	{"PUT /api/v1/flags/{flagKey}/prerequisites", "", `{"prerequisites":[]}`, 200, nil},
	{"PUT /api/v1/flags/{flagKey}/fallthrough", "", `{"serve":null}`, 200, nil},
	{"GET /api/v1/tenants/{tenantId}/environments/settings", "", "", 200, nil},
	{"PUT /api/v1/tenants/{tenantId}/environments/settings", "",
		`{"environments":[{"name":"development","color":"#1c7ed6"},{"name":"production","color":"#e03131"}]}`, 200, nil},
	{"GET /api/v1/tenants/{tenantId}/flag-rules", "", "", 200, nil},
	{"PUT /api/v1/tenants/{tenantId}/flag-rules", "", `{"requireReason":["production"],"requireOwner":true}`, 200, nil},
}

// call makes the row's call in a new world, with more appended to its path. It must succeed.
func (s shop) call(t *testing.T, row contractRow, root, owner *nodetest.Client, query string) *nodetest.Answer {
	t.Helper()
	w := newWorld(t, s, row, root, owner)
	if query != "" {
		w.path += "?" + query
	}
	return w.call(w.me, w.headersBut("")).Want(row.status)
}
