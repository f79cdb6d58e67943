package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/payment/paymenttest"
	"flagledger/events"
)

// otherTimes are the times in responses that are not times of facts, each as the end of an operation's path and the
// member.
var otherTimes = map[string][]string{
	"": {
		"lastEvaluatedAt",
		"lastUsedAt",
		"lastPrefetchedAt",
		"lastRequiredAt",
		"lastAccessedAt",
		"lastSeenAt",
		"readAt",
		"expiresAt",
		"currentPeriodStart",
		"currentPeriodEnd",
		"completed_at",
		"created_at",
		"updated_at",
	},
	"/metrics":                     {"from", "to", "time"},
	"/notifications":               {"createdAt"},
	"/notifications/{id}":          {"createdAt"},
	"/notifications/{id}/read":     {"createdAt"},
	"/notifications/send":          {"createdAt"},
	"/notifications/device-tokens": {"createdAt"},
	"/health":                      {"timestamp"},
	"/version":                     {"timestamp"},
	"/admin/status":                {"timestamp"},
}

func isOtherTime(operation, place string) bool {
	for path, members := range otherTimes {
		if strings.HasSuffix(operation, path) && slices.Contains(members, place[strings.LastIndex(place, ".")+1:]) {
			return true
		}
	}
	return false
}

// sixDigits matches times of facts in responses. No other time has six digits.
var sixDigits = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}Z`)

// timesOfFacts lists the places with times of facts in each operation's responses: "GET /api/v1/flags [].createdAt", or
// with a media type other than JSON, or a header.
func timesOfFacts(whole map[string]any, operations map[string]map[string]any) map[string]bool {
	places := map[string]bool{"GET /api/v1/flags/{flagKey}/diff .patch[].value": true} // its values have no type
	for name, operation := range operations {
		for status, response := range object(operation["responses"]) {
			if status[0] != '2' {
				continue
			}
			response := resolve(whole, object(response))
			for header, described := range object(response["headers"]) {
				if object(object(described)["schema"])["format"] == "date-time" {
					places[name+" "+header] = true
				}
			}
			for media, content := range object(response["content"]) {
				if example, ok := object(content)["example"].(string); ok && sixDigits.MatchString(example) {
					places[name+" "+media] = true
				}
				walkSchema(whole, object(object(content)["schema"]), "", func(place string, schema map[string]any) {
					if schema["format"] == "date-time" && !isOtherTime(name, place) {
						places[name+" "+place] = true
					}
				})
			}
		}
	}
	return places
}

// recordedTimes collects the times of the store's facts and checks responses by them.
type recordedTimes struct {
	store   events.Store
	after   events.Position
	times   map[string]bool
	places  map[string]bool // of timesOfFacts
	checked map[string]int  // number of checked times by place
}

// operations lists those whose responses contain times of facts.
func (r *recordedTimes) operations() map[string]bool {
	names := map[string]bool{}
	for place := range r.places {
		names[strings.Join(strings.Fields(place)[:2], " ")] = true
	}
	return names
}

// includes reports whether the store recorded a fact at a time.
func (r *recordedTimes) includes(t testing.TB, at string) bool {
	t.Helper()
	if r.times[at] {
		return true
	}
	for page, err := range r.store.Subscribe(context.Background(), r.after) { // events since the last call
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			r.times[e.At.UTC().Format(events.RecordedFormat)] = true
		}
		if r.after = page.Next; page.Live {
			break
		}
	}
	return r.times[at]
}

// check reports times in a response that the store did not record for a fact.
func (r *recordedTimes) check(a *nodetest.Answer) {
	a.T.Helper()
	if a.Status > 299 || a.Operation() == "" {
		return
	}
	const header = "X-Evaluated-At"
	asked, _ := url.QueryUnescape(a.Call)
	for _, at := range sixDigits.FindAllString(string(a.Body)+" "+a.Header.Get(header), -1) {
		if !strings.Contains(asked, at) && !r.includes(a.T, at) {
			a.T.Errorf("%s shows the time %s, at which no fact was recorded", a.Call, at)
		}
	}
	if a.Header.Get(header) != "" {
		r.count(a, " "+header, a.Header.Get(header))
	}
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	switch media {
	case "application/json":
		r.walk(a, "", a.JSON())
	case "application/x-ndjson":
		for line := range bytes.Lines(a.Body) {
			var value any
			if err := json.Unmarshal(line, &value); err != nil {
				a.T.Fatal(err)
			}
			r.walk(a, "[]", value)
		}
	}
	for _, at := range sixDigits.FindAllString(string(a.Body), -1) {
		r.count(a, " "+media, at)
	}
}

// walk counts the times in a part of a response.
func (r *recordedTimes) walk(a *nodetest.Answer, place string, value any) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			r.walk(a, place+"[]", v)
		}
	case map[string]any:
		for name, v := range value {
			r.walk(a, place+"."+name, v)
		}
	case string:
		r.count(a, " "+place, value)
	}
}

// count records that a place was checked. Its value must have six digits, unless it need not be a time.
func (r *recordedTimes) count(a *nodetest.Answer, place, value string) {
	place = a.Operation() + place
	if !r.places[place] {
		return
	}
	if sixDigits.FindString(value) == value {
		r.checked[place]++
	} else if !strings.HasSuffix(place, "[].value") {
		a.T.Errorf("%s: %s is %q, which is no time of a fact", a.Call, place, value)
	}
}

// Every time of a fact in every response is the time at which the store recorded it: sent as at, it includes the fact.
func TestTimesOfFactsMatchStore(t *testing.T) { nodetest.BothEngines(t, testTimesOfFactsMatchStore) }

func testTimesOfFactsMatchStore(t *testing.T) {
	t.Parallel()
	s := shopOn(t, nodetest.Database(t), paymenttest.New(t, time.Now), func(c *settings.Config) {
		c.SuperUsers = []string{"root@example.com"}
		c.StaleFor = time.Nanosecond // gives the cleanup list flags
	})
	root := s.SignUp("root@example.com")
	whole, operations := root.Document()
	recorded := &recordedTimes{
		store: s.Store(), times: map[string]bool{}, places: timesOfFacts(whole, operations), checked: map[string]int{},
	}
	s.Seen = recorded.check
	owner := s.SignUp("owner@example.com")
	e := &evolving{types: map[string]string{}, me: s.SignUp("tester@example.com")}
	e.me.OAuthClient("machine", "flags:read")
	project, _ := e.me.CreateProject("first")
	e.projects, e.environmentsSince = []string{project}, time.Now()
	e.times = []string{e.environmentsSince.UTC().Format(time.RFC3339Nano)}
	var reads []string
	for _, name := range slices.Sorted(maps.Keys(recorded.operations())) {
		if path, isRead := strings.CutPrefix(name, "GET "); isRead && !strings.Contains(path, "{invitationId}") {
			reads = append(reads, path)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		me, root := *e.me, *root
		me.Service = e.me.Service.In(nodetest.Drawn{TB: t, Property: rt})
		root.Service = me.Service
		for range rapid.IntRange(2, 6).Draw(rt, "changes") {
			e.change(rt, &me)
		}
		key := rapid.SampledFrom(someKeys).Draw(rt, "key")
		ids := strings.NewReplacer("{flagKey}", key, "{projectId}", project, "{tenantId}", me.Tenant, "{version}", "1")
		for _, path := range rapid.SliceOfN(rapid.SampledFrom(reads), 8, 8).Draw(rt, "reads") {
			reader := &me
			if strings.Contains(path, "/admin/") {
				reader = &root
			}
			reader.Call("GET", ids.Replace(path), nil)
		}
		me.Call("GET", nodetest.FlagPath(key, "/diff?from=1&to="+url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))),
			nil)
		me.Call("GET", "/api/v1/audit/export?format=csv", nil).Want(200)
		checkAt(rt, &me, key)
	})
	clear(recorded.checked) // drawn responses do not count
	for name := range recorded.operations() {
		row, query := rowOf(t, name), ""
		row.name = name
		switch {
		case strings.HasSuffix(name, "{flagKey}/evaluate"):
			query = "version=1"
		case strings.HasSuffix(name, "/evaluate"):
			query = "at=<<now>>"
		}
		s.call(t, row, root, owner, query)
	}
	s.call(t, contractRow{name: "GET /api/v1/audit/export", body: "format=csv", status: 200}, root, owner, "")
	for place := range recorded.places {
		if recorded.checked[place] == 0 {
			t.Errorf("no time was checked of %s", place)
		}
	}
}

// checkAt reads the state at the times that responses show.
func checkAt(t rapid.TB, me *nodetest.Client, key string) {
	at := func(time any) string { return "at=" + url.QueryEscape(fmt.Sprint(time)) }
	if a := me.Call("GET", nodetest.FlagPath(key, "/history"), nil); a.Status == 200 {
		newest := map[any]any{}
		for _, entry := range a.List() {
			if _, known := newest[entry["timestamp"]]; !known { // facts of one append have the same time
				newest[entry["timestamp"]] = entry["version"]
			}
			then := me.Call("GET", nodetest.FlagPath(key, "?"+at(entry["timestamp"])), nil)
			if then.Status == 404 && entry["action"] == "deleted" {
				continue
			}
			if got := then.Want(200).
				Object(); got["version"] != newest[entry["timestamp"]] ||
				got["updatedAt"] != entry["timestamp"] {
				t.Errorf("at %v, %s has version %v, updated at %v; the history has %v", entry["timestamp"], key, got["version"],
					got["updatedAt"], newest[entry["timestamp"]])
			}
		}
	}
	for _, p := range me.Call("GET", "/api/v1/projects", nil).Want(200).List() {
		for _, name := range []string{"createdAt", "updatedAt"} {
			then := me.Call("GET", "/api/v1/projects/"+p["id"].(string)+"?"+at(p[name]), nil).Want(200).Object()
			if then["updatedAt"] != p[name] {
				t.Errorf("at %v, the %s of a project, it was updated at %v", p[name], name, then["updatedAt"])
			}
		}
	}
	users := "/api/v1/tenants/" + me.Tenant + "/users"
	for _, m := range me.Call("GET", users, nil).Want(200).List() {
		then := me.Call("GET", users+"?"+at(m["createdAt"]), nil).Want(200)
		if !strings.Contains(string(then.Body), m["userId"].(string)) {
			t.Errorf("at %v, at which a member was added, the list lacks them: %s", m["createdAt"], then.Body)
		}
	}
}
