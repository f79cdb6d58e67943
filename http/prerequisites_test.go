package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// requireFlags replaces the prerequisites of a flag.
func requireFlags(me *nodetest.Client, key, list string, headers ...string) *nodetest.Answer {
	me.Service.T.Helper()
	return me.Call("PUT", nodetest.FlagPath(key, "/prerequisites"), `{"prerequisites":[`+list+`]}`, headers...)
}

// required reads the prerequisites of a flag.
func required(me *nodetest.Client, key, query string, headers ...string) any {
	me.Service.T.Helper()
	return me.Call("GET", nodetest.FlagPath(key, "/prerequisites"+query), nil, headers...).Want(200).Object()["prerequisites"]
}

func isOff(key string) string { return fmt.Sprintf(`{"flagKey":%q,"off":true}`, key) }

func isOn(key string) string { return fmt.Sprintf(`{"flagKey":%q,"serves":[{"value":true}]}`, key) }

// names checks that a refusal names something in its text.
func names(a *nodetest.Answer, what string) {
	a.T.Helper()
	if !strings.Contains(string(a.Body), what) {
		a.T.Errorf("the refusal does not name %s: %s", what, a.Body)
	}
}

func TestPrerequisites(t *testing.T) {
	nodetest.Cases{
		"they are set in one environment, and shown at any time": func(t *testing.T, me *nodetest.Client) {
			v, _ := me.TwoVariations("payments")
			me.CreateFlag("stop", nil)
			me.CreateFlag("k", nil)
			list := fmt.Sprintf(`{"flagKey":"payments","serves":[{"variationId":%q},{"value":"\u0041"}]},%s`, v, isOff("stop"))
			want := []any{
				map[string]any{"flagKey": "payments", "serves": []any{map[string]any{"variationId": v}, map[string]any{"value": "A"}}},
				map[string]any{"flagKey": "stop", "off": true},
			}
			nodetest.Same(t, "at first", required(me, "k", ""), []any{})
			set := requireFlags(me, "k", list).Want(200)
			nodetest.Same(t, "the answer", set.Object()["prerequisites"], want)
			nodetest.Same(t, "its tag", set.Header.Get("ETag"), `"2"`)
			read := me.Call("GET", nodetest.FlagPath("k", "/prerequisites"), nil).Want(200)
			nodetest.Same(t, "the list", []string{string(read.Body), read.Header.Get("ETag")},
				[]string{string(set.Body), `"2"`})
			requireFlags(me, "k", list).Want(200).Shows(map[string]any{"prerequisites": want})
			me.Call("PUT", nodetest.FlagPath("k", "/prerequisites"), string(read.Body), "If-Match", `"2"`).Want(200)
			requireFlags(me, "k", "", "If-Match", `"1"`).Refused(412)
			nodetest.Same(t, "elsewhere", required(me, "k", "", "X-Environment", "development"), []any{})
			requireFlags(me, "k", "", "If-Match", `"2"`).Want(200)
			nodetest.Same(t, "the empty list", required(me, "k", ""), []any{})
			nodetest.Same(t, "version 2", required(me, "k", "?version=2"), want)
			nodetest.Same(t, "the version in full", me.Call("GET", nodetest.FlagPath("k", "/versions/2"), nil).Want(200).
				Object()["flag"].(map[string]any)["environments"].(map[string]any)["production"].(map[string]any)["prerequisites"], want)
			diff := me.Call("GET", nodetest.FlagPath("k", "/diff?from=1&to=2"), nil).Want(200).Object()["changes"]
			nodetest.Same(t, "the difference", diff, []any{map[string]any{
				"field": "prerequisites", "environment": "production", "from": []any{}, "to": want,
			}})
			entry := me.History("k", "?action=prerequisites_changed")[1]
			nodetest.Same(t, "the history", []any{entry["environment"], entry["changes"]},
				[]any{"production", map[string]any{"prerequisites": map[string]any{"from": []any{}, "to": want}}})
			nodetest.Same(t, "the trail", me.Call("GET", "/api/v1/audit?action=flag.prerequisites_changed", nil).Want(200).
				List()[1]["changes"], entry["changes"])
			me.Call("POST", nodetest.FlagPath("k", "/revert"), `{"version":2}`).Want(200)
			nodetest.Same(t, "after the revert", required(me, "k", ""), want)
		},
		"developers change them, members read them, and machines by their scopes": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.CreateFlag("l", nil)
			path := nodetest.FlagPath("k", "/prerequisites")
			requireFlags(me.Join("developer"), "k", isOff("l")).Want(200)
			viewer := me.Join("viewer")
			requireFlags(viewer, "k", "").Refused(403)
			viewer.Call("GET", path, nil).Want(200)
			me.Machine("flags:read").Call("GET", path, nil).Want(200)
			requireFlags(me.Machine("flags:read"), "k", "").Refused(403)
			requireFlags(me.Machine("flags:write"), "k", "").Want(200)
			me.Machine("flags:evaluate").Call("GET", path, nil).Refused(403)
			other := me.NewTenant("other")
			other.Call("GET", path, nil).Refused(404)
			requireFlags(other, "k", "").Refused(404)
			other.CreateFlag("k", nil)
			requireFlags(other, "k", isOff("l")).Refused(422, "prerequisites[0].flagKey")
			requireFlags(me, "none", "").Refused(404)
		},
		"each wrong field is named": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.CreateFlag("l", nil)
			for body, field := range map[string]string{
				`{}`:                         "prerequisites",
				`{"prerequisites":null}`:     "prerequisites",
				`{"prerequisites":"x"}`:      "prerequisites",
				`{"prerequisites":[5]}`:      "prerequisites[0]",
				`{"prerequisites":[{}]}`:     "prerequisites[0].flagKey",
				`{"prerequisites":[],"x":1}`: "x",
				`{"prerequisites":[{"flagKey":5,"off":true}]}`:                                                               "prerequisites[0].flagKey",
				`{"prerequisites":[{"flagKey":"none","off":true}]}`:                                                          "prerequisites[0].flagKey",
				`{"prerequisites":[{"flagKey":"l"}]}`:                                                                        "prerequisites[0].serves",
				`{"prerequisites":[{"flagKey":"l","off":"yes"}]}`:                                                            "prerequisites[0].off",
				`{"prerequisites":[{"flagKey":"l","off":true,"serves":[{"value":true}]}]}`:                                   "prerequisites[0].serves",
				`{"prerequisites":[{"flagKey":"l","serves":{}}]}`:                                                            "prerequisites[0].serves",
				`{"prerequisites":[{"flagKey":"l","serves":[5]}]}`:                                                           "prerequisites[0].serves[0]",
				`{"prerequisites":[{"flagKey":"l","serves":[{}]}]}`:                                                          "prerequisites[0].serves[0]",
				`{"prerequisites":[{"flagKey":"l","serves":[{"variationId":"x","value":true}]}]}`:                            "prerequisites[0].serves[0]",
				`{"prerequisites":[{"flagKey":"l","serves":[{"value":true},{"value":true}]}]}`:                               "prerequisites[0].serves[1]",
				`{"prerequisites":[{"flagKey":"l","serves":[{"variationId":"x"}]}]}`:                                         "prerequisites[0].serves[0].variationId",
				`{"prerequisites":[{"flagKey":"l","serves":[{"variationId":5}]}]}`:                                           "prerequisites[0].serves[0].variationId",
				`{"prerequisites":[{"flagKey":"l","serves":[{"value":"on"}]}]}`:                                              "prerequisites[0].serves[0].value",
				`{"prerequisites":[{"flagKey":"l","off":true},{"flagKey":"l","off":true}]}`:                                  "prerequisites[1].flagKey",
				`{"prerequisites":[{"flagKey":"l","off":true,"bogus":1}]}`:                                                   "prerequisites[0].bogus",
				`{"prerequisites":[` + strings.Repeat(isOff("l")+",", 20) + isOff("l") + `]}`:                                "prerequisites",
				`{"prerequisites":[{"flagKey":"l","serves":[` + strings.Repeat(`{"value":true},`, 50) + `{"value":true}]}]}`: "prerequisites[0].serves",
			} {
				a := me.Call("PUT", nodetest.FlagPath("k", "/prerequisites"), body).Want(422)
				if _, named := a.Object()["errors"].(map[string]any)[field]; !named {
					a.T.Errorf("%s is refused without %s: %s", body, field, a.Body)
				}
			}
			me.Call("GET", nodetest.FlagPath("k", "/prerequisites?at=x"), nil).Refused(422, "at")
			me.Call("GET", nodetest.FlagPath("k", "/prerequisites?version=0"), nil).Refused(422, "version")
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
		},
		"cycles and long chains are refused": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("f0", nil)
			requireFlags(me, "f0", isOff("f0")).Refused(422, "prerequisites[0].flagKey")
			for i := 1; i < 10; i++ {
				me.CreateFlag(fmt.Sprint("f", i), nil)
				requireFlags(me, fmt.Sprint("f", i), isOn(fmt.Sprint("f", i-1))).Want(200)
			}
			names(requireFlags(me, "f0", isOff("f2")).Refused(422, "prerequisites[0].flagKey"), "f0 → f2 → f1 → f0")
			names(requireFlags(me, "f1", isOn("f0")+","+isOff("f2")).Refused(422, "prerequisites[1].flagKey"), "f1 → f2 → f1")
			requireFlags(me, "f0", isOff("f2"), "X-Environment", "development").Want(200) // another graph
			me.CreateFlag("first", nil)
			me.CreateFlag("last", nil)
			requireFlags(me, "first", isOn("f9")).Refused(422, "prerequisites[0].flagKey")
			requireFlags(me, "f0", isOn("last")).Refused(422, "prerequisites[0].flagKey")
			requireFlags(me, "first", isOn("f8")).Want(200)
		},
		"what others require cannot go": func(t *testing.T, me *nodetest.Client) {
			v, w := me.TwoVariations("payments")
			me.CreateFlag("k", nil)
			requireFlags(me, "k", fmt.Sprintf(`{"flagKey":"payments","serves":[{"variationId":%q}]}`, v)).Want(200)
			names(me.Call("DELETE", nodetest.FlagPath("payments"), nil).Refused(409), "k in production")
			names(me.Call("PATCH", nodetest.FlagPath("payments"), `{"status":"archived"}`).Refused(409), "k in production")
			names(me.Call("DELETE", nodetest.FlagPath("payments", "/variations/", v), nil).Refused(409), "k in production")
			names(me.Call("POST", nodetest.FlagPath("payments", "/revert"), `{"version":1}`).Refused(409), "k in production")
			me.Call("DELETE", nodetest.FlagPath("payments", "/variations/", w), nil).Want(204)
			me.Call("PATCH", nodetest.FlagPath("payments"), `{"status":"inactive"}`).Want(200)
			me.Call("POST", nodetest.FlagPath("payments", "/enable"), nil).Want(200)
			me.Call("POST", nodetest.FlagPath("payments", "/disable"), nil).Want(200)
			requireFlags(me, "k", "").Want(200)
			me.Call("DELETE", nodetest.FlagPath("payments", "/variations/", v), nil).Want(204)
			names(me.Call("POST", nodetest.FlagPath("k", "/revert"), `{"version":2}`).Refused(409), v)
			me.Call("DELETE", nodetest.FlagPath("payments"), nil).Want(204)
			names(me.Call("POST", nodetest.FlagPath("k", "/revert"), `{"version":2}`).Refused(409), "payments")
			nodetest.Same(t, "the list", required(me, "k", ""), []any{})
		},
		"a revert that would close a cycle is refused": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("a", nil)
			me.CreateFlag("b", nil)
			requireFlags(me, "a", isOff("b")).Want(200)
			requireFlags(me, "a", "").Want(200)
			requireFlags(me, "b", isOff("a")).Want(200)
			names(me.Call("POST", nodetest.FlagPath("a", "/revert"), `{"version":2}`).Refused(409), "a → b → a")
			me.Call("POST", nodetest.FlagPath("a", "/revert"), `{"version":1}`).Want(200)
		},
		"a tenant is reverted in an order that works": func(t *testing.T, me *nodetest.Client) {
			v, _ := me.TwoVariations("z")
			for _, key := range []string{"a", "m"} {
				me.CreateFlag(key, nil)
			}
			requireFlags(me, "a", isOn("m")).Want(200)
			requireFlags(me, "m", fmt.Sprintf(`{"flagKey":"z","serves":[{"variationId":%q}]}`, v)).Want(200)
			at := me.Call("GET", nodetest.FlagPath("m"), nil).Want(200).Object()["updatedAt"].(string)
			requireFlags(me, "a", "").Want(200)
			requireFlags(me, "m", "").Want(200)
			for _, key := range []string{"z", "m"} {
				me.Call("DELETE", nodetest.FlagPath(key), nil).Want(204)
			}
			want := map[string]any{"reverted": []any{"a", "m", "z"}, "restored": []any{"m", "z"}, "failed": []any{}}
			revert := func(dryRun bool) *nodetest.Answer {
				return me.Call("POST", "/api/v1/flags/revert", map[string]any{"at": at, "dryRun": dryRun}).Want(200)
			}
			revert(true).Shows(want)
			revert(false).Shows(want)
			nodetest.Same(t, "what a requires", len(required(me, "a", "").([]any)), 1)
			nodetest.Same(t, "what m requires", len(required(me, "m", "").([]any)), 1)
		},
	}.Run(t)
}
