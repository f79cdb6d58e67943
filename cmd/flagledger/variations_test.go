package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func (c *client) addVariation(key, body string) *answer {
	c.s.t.Helper()
	return c.call("POST", flagPath(key, "/variations"), body).want(201)
}

func (c *client) variations(key string) []map[string]any {
	c.s.t.Helper()
	return c.call("GET", flagPath(key, "/variations"), nil).want(200).list()
}

func TestVariations(t *testing.T) {
	cases{
		"a variation is added, and reads show it": func(t *testing.T, me *client) {
			me.createFlag("k", map[string]any{"type": "string"})
			same(t, "the list of none", string(me.call("GET", flagPath("k", "/variations"), nil).want(200).body), "[]")
			a := me.addVariation("k", `{"name":"blue","value":"#00f"}`)
			members(t, "a variation", a.object(), "id", "name", "value", "description", "weight")
			a.shows(map[string]any{"name": "blue", "value": "#00f", "description": "", "weight": 0})
			same(t, "headers", []string{a.header.Get("Location"), a.header.Get("ETag")}, []string{flagPath("k", "/variations/", a.object()["id"].(string)), `"2"`})
			same(t, "the list", me.variations("k"), []any{a.object()})
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"variations": []any{a.object()}, "version": 2})
			b := me.addVariation("k", `{"name":"Röt <&>","value":"#f00","description":"D","weight":33.333}`).shows(map[string]any{"name": "Röt <&>", "description": "D", "weight": 33.333})
			same(t, "the list", me.variations("k"), []any{a.object(), b.object()})
		},
		"PATCH changes what is sent of a variation": func(t *testing.T, me *client) {
			me.createFlag("k", map[string]any{"type": "json"})
			v := me.addVariation("k", `{"name":"v","value":{"a":1},"description":"D","weight":5}`).object()
			path := flagPath("k", "/variations/", v["id"].(string))
			version := 2
			for _, patch := range []struct {
				body string
				want map[string]any
			}{
				{`{"name":"w"}`, map[string]any{"name": "w"}},
				{`{"value":null}`, map[string]any{"value": nil}},
				{`{"value":[1]}`, map[string]any{"value": []int{1}}},
				{`{"description":"E"}`, map[string]any{"description": "E"}},
				{`{"description":null}`, map[string]any{"description": ""}},
				{`{"weight":0.001}`, map[string]any{"weight": 0.001}},
				{`{"weight":0}`, map[string]any{"weight": 0}},
				{`{"name":"x","value":true,"description":"F","weight":10000}`, map[string]any{"name": "x", "value": true, "description": "F", "weight": 10000}},
			} {
				version++
				for name, value := range patch.want {
					v[name] = value
				}
				a := me.call("PATCH", path, patch.body).want(200)
				same(t, "the variation after "+patch.body, a.object(), v)
				same(t, "the ETag after "+patch.body, a.header.Get("ETag"), fmt.Sprintf(`"%d"`, version))
				same(t, "the list after "+patch.body, me.variations("k"), []any{v})
				for _, nothing := range []string{`{}`, patch.body} {
					b := me.call("PATCH", path, nothing).want(200)
					same(t, "a PATCH that changes nothing", []any{b.object(), b.header.Get("ETag")}, []any{v, a.header.Get("ETag")})
				}
			}
		},
		"a weight has at most three decimals and is not negative": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			for i, weight := range []string{"-1", "-0.001", "0.0001", "1e-4", "10000.001", "1e5", "1e999", `"5"`, "true", "[]", "33.3333"} {
				me.call("POST", flagPath("k", "/variations"), fmt.Sprintf(`{"name":"n%d","value":true,"weight":%s}`, i, weight)).refused(422, "weight")
			}
			for weight, want := range map[string]string{"0": "0", "0.5": "0.5", "12.500": "12.5", "1e1": "10", "1E-3": "0.001", "100": "100", "10000": "10000", "0.000": "0"} {
				a := me.addVariation("k", fmt.Sprintf(`{"name":%q,"value":true,"weight":%s}`, weight, weight))
				same(t, weight, a.raw("weight"), want)
			}
		},
		"names are unique in the flag": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			me.createFlag("other", nil)
			a := me.addVariation("k", `{"name":"a","value":true}`).object()["id"].(string)
			me.addVariation("k", `{"name":"b","value":true}`)
			me.addVariation("k", `{"name":"B","value":true}`)
			me.addVariation("other", `{"name":"a","value":true}`)
			me.call("POST", flagPath("k", "/variations"), `{"name":"a","value":false}`).refused(422, "name")
			me.call("PATCH", flagPath("k", "/variations/", a), `{"name":"b"}`).refused(422, "name")
			me.call("PATCH", flagPath("k", "/variations/", a), `{"name":"a","weight":1}`).want(200)
			me.call("DELETE", flagPath("k", "/variations/", a), nil).want(204)
			me.addVariation("k", `{"name":"a","value":false}`)
		},
		"all that is wrong with a variation is named at once": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			id := me.addVariation("k", `{"name":"v","value":true}`).object()["id"].(string)
			for _, call := range [][2]string{{"POST", flagPath("k", "/variations")}, {"PATCH", flagPath("k", "/variations/", id)}} {
				me.call(call[0], call[1], map[string]any{"name": "", "value": "text", "description": strings.Repeat("é", 2001), "weight": -1}).refused(422, "name", "value", "description", "weight")
				me.call(call[0], call[1], map[string]any{"name": strings.Repeat("é", 201), "value": nil}).refused(422, "name", "value")
				me.call(call[0], call[1], `{"name":null,"value":null,"weight":null}`).refused(422, "name", "value", "weight")
				me.call(call[0], call[1], map[string]any{"name": 1, "value": 2, "weight": "1", "id": "x"}).refused(422, "name", "value", "weight", "id")
			}
			me.call("POST", flagPath("k", "/variations"), `{}`).refused(422, "name", "value")
			same(t, "variations", len(me.variations("k")), 1)
		},
		"a flag has at most 100 variations": func(_ *testing.T, me *client) {
			var many []map[string]any
			for i := range 101 {
				many = append(many, map[string]any{"name": fmt.Sprint(i), "value": true})
			}
			me.call("POST", "/api/v1/flags", map[string]any{"key": "k", "type": "boolean", "flag_variations": many}).refused(422, "flag_variations")
			me.createFlag("k", map[string]any{"flag_variations": many[:100]})
			me.call("POST", flagPath("k", "/variations"), many[100]).refused(409)
		},
		"a removed variation is gone, the others keep their order": func(t *testing.T, me *client) {
			me.createFlag("k", map[string]any{"flag_variations": []any{map[string]any{"name": "d", "value": true}, map[string]any{"name": "c", "value": true}}})
			me.addVariation("k", `{"name":"b","value":true}`)
			me.addVariation("k", `{"name":"a","value":true}`)
			list := me.variations("k")
			same(t, "names", column(list, "name"), []string{"d", "c", "b", "a"})
			path := flagPath("k", "/variations/", list[1]["id"].(string))
			me.call("DELETE", path, nil).want(204)
			same(t, "names", column(me.variations("k"), "name"), []string{"d", "b", "a"})
			me.call("PATCH", flagPath("k", "/variations/", list[0]["id"].(string)), `{"name":"z"}`).want(200)
			me.addVariation("k", `{"name":"c","value":true}`)
			same(t, "names", column(me.variations("k"), "name"), []string{"z", "b", "a", "c"})
			me.call("DELETE", path, nil).refused(404)
			me.call("PATCH", path, `{"name":"n"}`).refused(404)
		},
		"variations are listed page by page": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			var want []any
			for _, name := range []string{"c", "a", "b", "e", "d"} {
				me.addVariation("k", fmt.Sprintf(`{"name":%q,"value":true}`, name))
				want = append(want, name)
			}
			checkPages(t, me, flagPath("k", "/variations"), "name", want)
			me.createFlag("none", nil)
			me.call("GET", flagPath("none", "/variations?limit=1&offset=5"), nil).want(200)
		},
		"a variation of another flag or tenant is 404 just as a missing one": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			me.createFlag("l", nil)
			id := me.addVariation("k", `{"name":"v","value":true}`).object()["id"].(string)
			other := me.newTenant("other")
			other.createFlag("k", nil)
			for _, method := range []string{"PATCH", "DELETE"} {
				var body any
				if method == "PATCH" {
					body = `{"name":"w"}`
				}
				for _, at := range []struct {
					c   *client
					key string
				}{{me, "l"}, {other, "k"}} {
					missing := uuid.NewString()
					foreign := at.c.call(method, flagPath(at.key, "/variations/", id), body).refused(404)
					sameBut(t, foreign, id, at.c.call(method, flagPath(at.key, "/variations/", missing), body).refused(404), missing)
				}
			}
			same(t, "variations", column(me.variations("k"), "name"), []string{"v"})
			same(t, "the other's variations", len(other.variations("k")), 0)
		},
	}.run(t)
}
