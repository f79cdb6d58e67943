package http_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/payment/paymenttest"
)

// otherIDs are parameters with id in their name that are taken literally: ids of the payment provider, texts of
// callers, and positions of streams.
var otherIDs = []string{".customerId", ".planId", ".productId", ".referralId", ".referenceId", "Last-Event-ID"}

func isID(p parameter) bool {
	name := p.name[strings.LastIndex(p.name, ".")+1:]
	named := name == "id" || name == "event" || name == "client_id" || strings.HasSuffix(name, "Id") ||
		strings.HasSuffix(name, "-ID")
	// The legacy path of an evaluation has the unit as userId. Reports of usage come from machines alone, and have a test
	// of their own.
	return named && !slices.Contains(otherIDs, p.name) && p.operation != "POST /api/flags/{flagKey}/evaluate" &&
		p.operation != "POST /api/v1/usage"
}

// idRows are calls with ids that contractRows and additionRows do not send.
var idRows = []contractRow{
	{"GET /api/v1/flags", "", "projectId=<<projectId>>", 200, nil},
	{"GET /api/v1/config", "", "format=flagd&projectId=<<projectId>>", 200, nil},
	{"POST /api/v1/flags", "", `{"key":"new","type":"boolean","projectId":"<<projectId>>"}`, 201, nil},
	{"PATCH /api/v1/flags/{flagKey}", "", `{"projectId":"<<projectId>>"}`, 200, nil},
	{"PATCH /api/v1/flags/projects/{projectId}/flags/{flagKey}", "", `{"projectId":"<<projectId>>"}`, 200, nil},
	{"GET /api/v1/flags/{flagKey}/history", "", "userId=<<callerId>>", 200, nil},
	{"GET /api/v1/audit", "", "userId=<<callerId>>&resourceId=<<projectId>>", 200, nil},
	{"GET /api/v1/audit/export", "", "userId=<<callerId>>&resourceId=<<projectId>>", 200, nil},
	{"GET /api/v1/admin/audit", "", "userId=<<callerId>>&resourceId=<<projectId>>&tenantId=<<tenantId>>", 200, nil},
	{"GET /api/v1/audit/proof", "", "event=<<event>>", 200, nil},
	{"POST /api/v1/tenants/{tenantId}/membership/accept", "", "", 200, nil},
	{"POST /api/v1/tenants/{tenantId}/membership/decline", "", "", 409, nil},
	{"POST /api/v1/flags/revert", "", `{"at":"<<now>>","projectId":"<<projectId>>"}`, 200, nil},
	{"PUT /api/v1/flags/{flagKey}/fallthrough", "", `{"serve":{"variationId":"<<variationId>>"}}`, 200, nil},
	{"PUT /api/v1/flags/{flagKey}/fallthrough", "", `{"serve":` + rolloutOfOne + `}`, 200, nil},
	{"PUT /api/v1/flags/{flagKey}/rules", "", rulesWithIDs, 200, nil},
	{"PUT /api/v1/flags/{flagKey}/rules", "", rulesWithRollouts, 200, nil},
	{"PUT /api/v1/flags/{flagKey}/prerequisites", "",
		`{"prerequisites":[{"flagKey":"<<requiredKey>>","serves":[{"variationId":"<<requiredVariationId>>"}]}]}`, 200, nil},
	{"PUT /api/v1/segments/{segmentKey}/rules", "", `{"rules":[{"id":"<<segmentRuleId>>","conditions":[]}]}`, 200, nil},
	{"POST /api/v1/segments/{segmentKey}/check", "", `{"rules":[{"id":"<<segmentRuleId>>","conditions":[]}]}`, 200, nil},
	{"GET /api/v1/segments/{segmentKey}/history", "", "userId=<<callerId>>", 200, nil},
	{"POST /api/v1/flags/{flagKey}/rules/evaluate", "", `{"targetingKey":"u",` + rulesWithIDs[1:], 200, nil},
	{"POST /api/v1/flags/{flagKey}/rules/evaluate", "", `{"targetingKey":"u",` + rulesWithRollouts[1:], 200, nil},
}

const (
	rolloutOfOne = `{"rollout":[{"variationId":"<<variationId>>","weight":1}]}`
	rulesWithIDs = `{"rules":[{"id":"<<ruleId>>","name":"r","conditions":[],"serve":{"variationId":"<<variationId>>"}}],` +
		`"fallthrough":{"variationId":"<<served>>"}}`
	rulesWithRollouts = `{"rules":[{"name":"r","conditions":[],"serve":` + rolloutOfOne + `}],` +
		`"fallthrough":{"rollout":[{"variationId":"<<rolledOut>>","weight":1}]}}`
)

var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// sends reports whether a row's call has a value for a parameter.
func (row contractRow) sends(t *testing.T, p parameter) bool {
	t.Helper()
	switch p.in {
	case "path":
		return true
	case "header":
		return p.name == "X-Tenant-ID"
	case "query":
		return strings.Contains("&"+row.body, "&"+p.name+"=")
	}
	if row.isForm() {
		return strings.Contains(row.body, "&"+p.name[1:]+"=")
	}
	if row.body == "" {
		return false
	}
	var body any
	if err := json.Unmarshal([]byte(row.body), &body); err != nil {
		t.Fatal(err)
	}
	return hasPlace(body, p.name)
}

// hasPlace reports whether JSON has a value at a place, as walkSchema writes it.
func hasPlace(value any, place string) bool {
	switch {
	case place == "":
		return value != nil
	case strings.HasPrefix(place, "[]"):
		entries := list(value)
		return len(entries) > 0 && hasPlace(entries[0], place[2:])
	default:
		name := strings.TrimPrefix(place, ".")
		if end := strings.IndexAny(name, ".["); end >= 0 {
			return hasPlace(object(value)[name[:end]], name[end:])
		}
		return hasPlace(object(value)[name], "")
	}
}

// Every id may be sent in capitals and means the same.
func TestEachIDIsTakenInCapitals(t *testing.T) {
	t.Parallel()
	s := shopOn(t, nodetest.Database(t), paymenttest.New(t, time.Now), func(c *settings.Config) {
		c.SuperUsers, c.StaleFor = []string{"root@example.com"}, time.Nanosecond
	})
	s.stripe.AddProduct("prod_1")
	s.stripe.AddCoupon("LAUNCH25")
	s.stripe.AddPromotion("SPRING")
	root := s.SignUp("root@example.com")
	whole, operations := root.Document()
	ids := map[string][]parameter{}
	for _, p := range parameters(whole, operations) {
		if isID(p) {
			ids[p.operation] = append(ids[p.operation], p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		t.Run(name, func(t *testing.T) {
			missing, owner := ids[name], s.SignUp(nodetest.Address()) // a person may create enough tenants alone
			for _, row := range rowsOf(name) {
				sent := slices.DeleteFunc(slices.Clone(missing), func(p parameter) bool { return !row.sends(t, p) })
				if len(sent) == 0 {
					continue
				}
				missing = slices.DeleteFunc(missing, func(p parameter) bool { return row.sends(t, p) })
				row.name = name
				checkCapitals(t, newWorld(t, s, row, root, owner))
			}
			for _, p := range missing {
				if p.name != "X-Tenant-ID" { // it is read before the operation is known
					t.Errorf("no call sends the %s %s", p.in, p.name)
				}
			}
		})
	}
}

// rowsOf lists the calls of an operation, or of the current operation of a legacy path.
func rowsOf(name string) (rows []contractRow) {
	all := slices.Concat(idRows, contractRows, additionRows)
	for _, name := range []string{name, current(name)} {
		for _, row := range all {
			if row.name == name {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 && name != current(name) {
			break
		}
	}
	return rows
}

// checkCapitals makes a call with all ids in capitals. A read returns the same as with lower case.
func checkCapitals(t *testing.T, w *world) {
	t.Helper()
	path, body := w.filled(w.path), w.filled(w.body)
	upper := func(text string) string { return uuidPattern.ReplaceAllStringFunc(text, strings.ToUpper) }
	capital := *w
	capital.path, capital.body = upper(path), upper(body)
	headers := w.headersBut("")
	if w.me.Tenant != "" {
		headers = append(headers, "X-Tenant-ID", strings.ToUpper(w.me.Tenant))
	}
	caller := w.me.Lenient()
	got := capital.call(caller, headers).Want(w.status)
	if w.method != "GET" {
		return
	}
	w.path, w.body = path, body
	usual := w.call(w.me.Lenient(), w.headersBut("")).Want(w.status)
	shown := func(a *nodetest.Answer) string { return accessed.ReplaceAllString(string(a.Body), "") } // the calls change it
	nodetest.Same(t, fmt.Sprintf("the answer to %s", got.Call), shown(got), shown(usual))
	if text := string(got.Body); text == "[]" || text == "" {
		t.Errorf("%s finds nothing", got.Call)
	}
}
