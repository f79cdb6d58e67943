package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// Each call of segments names each field that is wrong, and changes nothing.
func TestWrongFieldsOfSegmentsAreNamed(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	type wrong struct{ query, body, field string }
	condition := func(c string) string { return `{"rules":[{"conditions":[` + c + `]}]}` }
	at := func(member string) string { return "rules[0].conditions[0]." + member }
	ofRules := []wrong{
		{"", `{"rules":"x"}`, "rules"},
		{"", `{"rules":[5]}`, "rules[0]"},
		{"", `{"rules":[{}]}`, "rules[0].conditions"},
		{"", `{"rules":[{"conditions":[],"name":"` + long(201) + `"}]}`, "rules[0].name"},
		{"", `{"rules":[{"conditions":[],"serve":{"value":true}}]}`, "rules[0].serve"},
		{"", `{"rules":[{"conditions":{}}]}`, "rules[0].conditions"},
		{"", `{"rules":[` + strings.Repeat(`{"conditions":[]},`, 100) + `{"conditions":[]}]}`, "rules"},
		{"", condition(`{"attribute":"a","values":["x"]}`), at("op")},
		{"", condition(`{"attribute":"a","op":"like","values":["x"]}`), at("op")},
		{"", condition(`{"op":"in","values":["x"]}`), at("attribute")},
		{"", condition(`{"attribute":"$x","op":"in","values":["x"]}`), at("attribute")},
		{"", condition(`{"attribute":"$now","op":"in","values":["x"]}`), at("attribute")},
		{"", condition(`{"attribute":"$environment.x","op":"in","values":["x"]}`), at("attribute")},
		{"", condition(`{"attribute":5,"op":"in","values":["x"]}`), at("attribute")},
		{"", condition(`{"attribute":"a","op":"in","values":"x"}`), at("values")},
		{"", condition(`{"attribute":"a","op":"in","values":[{}]}`), at("values[0]")},
		{"", condition(`{"attribute":"a","op":"in","values":["x"],"negate":"no"}`), at("negate")},
		{"", condition(`{"attribute":"a","op":"in_segment","values":["other"]}`), at("attribute")},
		{"", condition(`{"op":"in_segment","values":[]}`), at("values")},
		{"", condition(`{"op":"in_segment","values":[5]}`), at("values[0]")},
		{"", condition(`{"op":"in_segment","values":["other","none"]}`), at("values[1]")},
		{"", condition(`{"op":"in_segment","values":["` + long(129) + `"]}`), at("values[0]")},
	}
	past := []wrong{{"at=x", "", "at"}, {"at=2999-01-01T00:00:00Z", "", "at"}, {"version=0", "", "version"}, {"version=x", "", "version"},
		{"at=2026-01-01T00:00:00Z&version=1", "", "version"}}
	page := []wrong{{"limit=0", "", "limit"}, {"limit=1001", "", "limit"}, {"offset=-1", "", "offset"}}
	fields := []wrong{
		{"", `{"name":""}`, "name"}, {"", `{"name":"` + long(201) + `"}`, "name"}, {"", `{"name":5}`, "name"},
		{"", `{"description":"` + long(2001) + `"}`, "description"}, {"", `{"description":5}`, "description"},
		{"", `{"tags":"x"}`, "tags"}, {"", `{"tags":[5]}`, "tags[0]"}, {"", `{"bogus":1}`, "bogus"},
	}
	create := []wrong{{"", `{}`, "key"}, {"", `{"key":5}`, "key"}, {"", `{"key":""}`, "key"}, {"", `{"key":"a b"}`, "key"},
		{"", `{"key":".a"}`, "key"}, {"", `{"key":"$a"}`, "key"}, {"", `{"key":"` + long(129) + `"}`, "key"}}
	for _, w := range append(fields, ofRules...) {
		create = append(create, wrong{"", `{"key":"new",` + w.body[1:], w.field})
	}
	calls := map[string][]wrong{
		"GET ":           append([]wrong{{"at=x", "", "at"}}, page...),
		"POST ":          create,
		"GET /k":         past,
		"PATCH /k":       append([]wrong{{"", `{"key":"b"}`, "key"}, {"", `{"private":true}`, "private"}}, fields...),
		"GET /k/rules":   past,
		"PUT /k/rules":   append([]wrong{{"", `{}`, "rules"}, {"", `{"fallthrough":null,"rules":[]}`, "fallthrough"}}, ofRules...),
		"GET /k/members": append(append([]wrong{{"list=others", "", "list"}}, past...), page...),
		"POST /k/members": {
			{"", `{"add":["a"]}`, "list"}, {"", `{"list":"others","add":["a"]}`, "list"}, {"", `{"list":5}`, "list"},
			{"", `{"list":"included","add":"a"}`, "add"}, {"", `{"list":"included","add":[5]}`, "add[0]"},
			{"", `{"list":"included","add":["a",""]}`, "add[1]"}, {"", `{"list":"included","add":["a\u0001"]}`, "add[0]"},
			{"", `{"list":"included","add":["` + strings.Repeat("é", 129) + `"]}`, "add[0]"},
			{"", `{"list":"included","remove":[""]}`, "remove[0]"}, {"", `{"list":"included","remove":{}}`, "remove"},
			{"", `{"list":"included","add":["b","a"],"remove":["c","a"]}`, "remove[1]"},
			{"", `{"list":"included","add":["a"` + strings.Repeat(`,"a"`, 10_000) + `]}`, "add"},
			{"", `{"list":"included","bogus":1}`, "bogus"},
		},
		"GET /k/flags": page,
		"POST /k/check": {
			{"", `{"targetingKey":5}`, "targetingKey"}, {"", `{"attributes":[]}`, "attributes"}, {"", `{"environment":5}`, "environment"},
			{"", `{"bogus":1}`, "bogus"}, {"at=x", `{}`, "at"}, {"version=0", `{}`, "version"}, {"explain=true", `{}`, "explain"},
		},
		"GET /k/history":  append([]wrong{{"action=enabled", "", "action"}, {"from=x", "", "from"}, {"to=x", "", "to"}}, page...),
		"GET /k/versions": page,
		"GET /k/diff":     {{"to=1", "", "from"}, {"from=1", "", "to"}, {"from=0&to=1", "", "from"}, {"from=1&to=x", "", "to"}},
		"POST /k/revert": {
			{"", `{}`, "version"}, {"", `{"version":0}`, "version"}, {"", `{"version":"1"}`, "version"}, {"", `{"at":"x"}`, "at"},
			{"", `{"version":1,"bogus":1}`, "bogus"},
		},
	}
	right := map[string]string{
		"POST ": `{"key":"new"}`, "PATCH /k": `{"name":"n"}`, "PUT /k/rules": `{"rules":[]}`,
		"POST /k/members": `{"list":"included","add":["a"]}`, "POST /k/revert": `{"version":1}`,
	}
	nodetest.Cases{
		"in every call": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "other", "")
			createSegment(me, "k", ofSegment("other"))
			before := me.Call("GET", segmentsPath, nil).Want(200).JSON()
			for call, list := range calls {
				method, path, _ := strings.Cut(call, " ")
				path = segmentsPath + path
				for _, w := range list {
					var body any
					if w.body != "" {
						body = w.body
					}
					if w.query != "" {
						w.query = "?" + w.query
					}
					got := me.Call(method, path+w.query, body)
					if wrong, _ := got.Object()["errors"].(map[string]any); got.Status != 422 || wrong[w.field] == nil {
						t.Errorf("%s %.120s %.200s: %d %.400s, want 422 that names %s", call, w.query, w.body, got.Status, got.Body, w.field)
					}
				}
				if method == "GET" || strings.HasSuffix(path, "/check") {
					continue
				}
				me.Call(method, path, right[call], "X-Change-Reason", long(501)).Refused(422, "X-Change-Reason")
				if path != segmentsPath {
					me.Call(method, path, right[call], "If-Match", "5").Refused(422, "If-Match")
				}
			}
			nodetest.Same(t, "the segments", me.Call("GET", segmentsPath, nil).Want(200).JSON(), before)
		},
		"and other tenants' segments are not there": func(_ *testing.T, me *nodetest.Client) {
			createSegment(me, "k", "")
			stranger := me.NewTenant("other")
			for call, body := range map[string]any{
				"GET /k": nil, "PATCH /k": `{"name":"n"}`, "DELETE /k": nil, "GET /k/rules": nil, "PUT /k/rules": `{"rules":[]}`,
				"GET /k/members": nil, "POST /k/members": `{"list":"included","add":["a"]}`, "GET /k/flags": nil,
				"POST /k/check": `{}`, "GET /k/history": nil, "GET /k/versions": nil, "GET /k/versions/1": nil,
				"GET /k/diff?from=1&to=1": nil, "POST /k/revert": `{"version":1}`, "GET /k?version=1": nil, "GET /k/members?version=1": nil,
			} {
				method, path, _ := strings.Cut(call, " ")
				stranger.Call(method, segmentsPath+path, body).Refused(404)
			}
			stranger.CreateFlag("f", nil)
			stranger.SetRules("f", `{"rules":[`+strings.TrimSuffix(ofSegment("k"), "}")+`,"serve":{"value":true}}]}`).
				Refused(422, "rules[0].conditions[0].values[0]")
			nodetest.Same(me.Service.T, "their segments", stranger.Call("GET", segmentsPath, nil).Want(200).List(), []map[string]any{})
		},
		"a CSV is taken as a whole or not at all": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "k", "")
			send := func(text string) *nodetest.Answer {
				return me.Call("POST", segmentPath("k", "/members?list=included"), text, "Content-Type", "text/csv; charset=utf-8")
			}
			var many strings.Builder
			for i := range 10_001 {
				fmt.Fprintf(&many, "user-%05d\r\n", i)
			}
			for text, field := range map[string]string{
				many.String(): "add", "": "body", "a\nb,c\n": "body", "a\n\"b\n": "body", "a\n\xff\xfe\n": "body", "\x1f\x8b\x08\x00\x01": "body",
				"a\nb\x00\n": "body", "a\nb\x01\n": "add[1]", "a\n\"\"\n": "add[1]", "a\n" + long(257) + "\n": "add[1]", "a\n\"b\nc\"\n": "add[1]",
			} {
				send(text).Refused(422, field)
			}
			me.Call("GET", segmentPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
			send("\r\n").Want(200).Shows(map[string]any{"added": 0, "unchanged": 0})
			send("\xef\xbb\xbf\r\n  spaces \r\n\"quoted, \"\"twice\"\"\"\r\nlast").Want(200).Shows(map[string]any{"added": 3})
			nodetest.Same(t, "the members", me.Call("GET", segmentPath("k", "/members"), nil).Want(200).JSON(),
				[]any{"  spaces ", "last", `quoted, "twice"`})
			send(many.String()[:len("user-00000\r\n")*10_000]).Want(200).Shows(map[string]any{"added": 10_000})
			send(many.String()[:len("user-00000\r\n")*10_000]).Want(200).Shows(map[string]any{"added": 0, "unchanged": 10_000})
		},
	}.Run(t)
}
