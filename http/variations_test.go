package http_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

func TestVariations(t *testing.T) {
	nodetest.Cases{
		"a variation is added, and reads show it": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "string"})
			nodetest.Same(t, "the list of none",
				string(me.Call("GET", nodetest.FlagPath("k", "/variations"), nil).Want(200).Body), "[]")
			a := me.AddVariation("k", `{"name":"blue","value":"#00f"}`)
			nodetest.Members(t, "a variation", a.Object(), "id", "name", "value", "description", "weight")
			a.Shows(map[string]any{"name": "blue", "value": "#00f", "description": "", "weight": 0})
			nodetest.Same(t, "headers", []string{a.Header.Get("Location"), a.Header.Get("ETag")},
				[]string{nodetest.FlagPath("k", "/variations/", a.Object()["id"].(string)), `"2"`})
			nodetest.Same(t, "the list", me.Variations("k"), []any{a.Object()})
			me.Call("GET", nodetest.FlagPath("k"), nil).
				Want(200).
				Shows(map[string]any{"variations": []any{a.Object()}, "version": 2})
			b := me.AddVariation("k", `{"name":"Röt <&>","value":"#f00","description":"D","weight":33.333}`).
				Shows(map[string]any{"name": "Röt <&>", "description": "D", "weight": 33.333})
			nodetest.Same(t, "the list", me.Variations("k"), []any{a.Object(), b.Object()})
		},
		"PATCH changes what is sent of a variation": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "json"})
			v := me.AddVariation("k", `{"name":"v","value":{"a":1},"description":"D","weight":5}`).Object()
			path := nodetest.FlagPath("k", "/variations/", v["id"].(string))
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
				a := me.Call("PATCH", path, patch.body).Want(200)
				nodetest.Same(t, "the variation after "+patch.body, a.Object(), v)
				nodetest.Same(t, "the ETag after "+patch.body, a.Header.Get("ETag"), fmt.Sprintf(`"%d"`, version))
				nodetest.Same(t, "the list after "+patch.body, me.Variations("k"), []any{v})
				for _, nothing := range []string{`{}`, patch.body} {
					b := me.Call("PATCH", path, nothing).Want(200)
					nodetest.Same(t, "a PATCH that changes nothing", []any{b.Object(), b.Header.Get("ETag")},
						[]any{v, a.Header.Get("ETag")})
				}
			}
		},
		"a weight has at most three decimals and is not negative": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for i, weight := range []string{"-1", "-0.001", "0.0001", "1e-4", "10000.001", "1e5", "1e999", `"5"`, "true", "[]", "33.3333"} {
				me.Call("POST", nodetest.FlagPath("k", "/variations"), fmt.Sprintf(`{"name":"n%d","value":true,"weight":%s}`, i, weight)).
					Refused(422, "weight")
			}
			for weight, want := range map[string]string{"0": "0", "0.5": "0.5", "12.500": "12.5", "1e1": "10", "1E-3": "0.001", "100": "100", "10000": "10000", "0.000": "0"} {
				a := me.AddVariation("k", fmt.Sprintf(`{"name":%q,"value":true,"weight":%s}`, weight, weight))
				nodetest.Same(t, weight, a.Raw("weight"), want)
			}
		},
		"all that is wrong with a variation is named at once": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			id := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
			for _, call := range [][2]string{{"POST", nodetest.FlagPath("k", "/variations")}, {"PATCH", nodetest.FlagPath("k", "/variations/", id)}} {
				me.Call(call[0], call[1], map[string]any{"name": "", "value": "text", "description": strings.Repeat("é", 2001), "weight": -1}).
					Refused(422, "name", "value", "description", "weight")
				me.Call(call[0], call[1], map[string]any{"name": strings.Repeat("é", 201), "value": nil}).
					Refused(422, "name", "value")
				me.Call(call[0], call[1], `{"name":null,"value":null,"weight":null}`).Refused(422, "name", "value", "weight")
				me.Call(call[0], call[1], map[string]any{"name": 1, "value": 2, "weight": "1", "id": "x"}).
					Refused(422, "name", "value", "weight", "id")
			}
			me.Call("POST", nodetest.FlagPath("k", "/variations"), `{}`).Refused(422, "name", "value")
			nodetest.Same(t, "variations", len(me.Variations("k")), 1)
		},
		"a removed variation is gone, the others keep their order": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag(
				"k",
				map[string]any{
					"flag_variations": []any{map[string]any{"name": "d", "value": true}, map[string]any{"name": "c", "value": true}},
				},
			)
			me.AddVariation("k", `{"name":"b","value":true}`)
			me.AddVariation("k", `{"name":"a","value":true}`)
			list := me.Variations("k")
			nodetest.Same(t, "names", nodetest.Column(list, "name"), []string{"d", "c", "b", "a"})
			path := nodetest.FlagPath("k", "/variations/", list[1]["id"].(string))
			me.Call("DELETE", path, nil).Want(204)
			nodetest.Same(t, "names", nodetest.Column(me.Variations("k"), "name"), []string{"d", "b", "a"})
			me.Call("PATCH", nodetest.FlagPath("k", "/variations/", list[0]["id"].(string)), `{"name":"z"}`).Want(200)
			me.AddVariation("k", `{"name":"c","value":true}`)
			nodetest.Same(t, "names", nodetest.Column(me.Variations("k"), "name"), []string{"z", "b", "a", "c"})
			me.Call("DELETE", path, nil).Refused(404)
			me.Call("PATCH", path, `{"name":"n"}`).Refused(404)
		},
		"variations are listed page by page": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			var want []any
			for _, name := range []string{"c", "a", "b", "e", "d"} {
				me.AddVariation("k", fmt.Sprintf(`{"name":%q,"value":true}`, name))
				want = append(want, name)
			}
			checkPages(t, me, nodetest.FlagPath("k", "/variations"), "name", want)
			me.CreateFlag("none", nil)
			me.Call("GET", nodetest.FlagPath("none", "/variations?limit=1&offset=5"), nil).Want(200)
		},
		"a variation of another flag or tenant is 404 just as a missing one": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.CreateFlag("l", nil)
			id := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
			other := me.NewTenant("other")
			other.CreateFlag("k", nil)
			for _, method := range []string{"PATCH", "DELETE"} {
				var body any
				if method == "PATCH" {
					body = `{"name":"w"}`
				}
				for _, at := range []struct {
					c   *nodetest.Client
					key string
				}{{me, "l"}, {other, "k"}} {
					missing := uuid.NewString()
					foreign := at.c.Call(method, nodetest.FlagPath(at.key, "/variations/", id), body).Refused(404)
					sameBut(t, foreign, id, at.c.Call(method, nodetest.FlagPath(at.key, "/variations/", missing), body).Refused(404),
						missing)
				}
			}
			nodetest.Same(t, "variations", nodetest.Column(me.Variations("k"), "name"), []string{"v"})
			nodetest.Same(t, "the other's variations", len(other.Variations("k")), 0)
		},
	}.Run(t)
}
