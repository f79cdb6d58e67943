package http_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func TestRevisions(t *testing.T) { nodetest.BothEngines(t, testRevisions) }

func testRevisions(t *testing.T) {
	at := func(me *nodetest.Client, key, revision string, body any, headers ...string) *nodetest.Answer {
		return me.Call("POST", nodetest.FlagPath(key, "/evaluate?revision="+url.QueryEscape(revision)), body, headers...)
	}
	nodetest.Cases{
		"an answer can be had again by its revision": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", map[string]any{"type": "string", "defaultValue": "old"})
			then := me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"revision": "2"})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"defaultValue":"new"}`).Want(200)
			nodetest.Same(t, "the answer", string(at(me, "k", "2", `{}`).Want(200).Body), string(then.Body))
			me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"value": "new", "revision": "3"})
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?revision=2&explain=true"), `{}`).
				Want(200).
				Shows(map[string]any{"value": "old", "revision": "2"})
		},
		"it has the time of an environment that was added after the flag's last change": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			add := func() string {
				me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"qa"}`).Want(201)
				a := me.Evaluate("k", `{}`, "X-Environment", "qa").Want(200)
				return a.Object()["revision"].(string)
			}
			remove := func() {
				me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/qa", nil).Want(204)
			}
			first := add()
			version, added, _ := strings.Cut(first, "@")
			if _, err := time.Parse(events.RecordedFormat, added); err != nil || version != "1" {
				t.Fatalf("the revision is %s", first)
			}
			remove()
			second := add()
			if first == second {
				t.Errorf("two environments have answers of one revision %s", first)
			}
			remove()
			for _, revision := range []string{first, second} {
				at(me, "k", revision, `{}`, "X-Environment", "qa").Want(200).Shows(map[string]any{"revision": revision})
				at(me, "k", revision, `{}`).Refused(404) // of production
			}
			at(me, "k", "1", `{}`, "X-Environment", "qa").Refused(404)
			me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"revision": "1"})
		},
		"a revision that no answer had is not found, and no revision is refused": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, revision := range []string{"2", "9223372036854775807", "1@2026-03-14T15:09:26.535000Z",
				"1@2026-03-14T15:09:26.535000Z~2026-03-14T15:09:26.535000Z"} {
				at(me, "k", revision, `{}`).Refused(404)
			}
			at(me, "none", "1", `{}`).Refused(404)
			for _, revision := range []string{"", "0", "01", "+1", "-1", "x", "1@", "1@x", "@2026-03-14T15:09:26.535000Z",
				"1@2026-03-14T15:09:26.535Z", "1@2026-03-14T16:09:26.535000+01:00", "99999999999999999999"} {
				at(me, "k", revision, `{}`).Refused(422, "revision")
			}
			for _, other := range []string{"version=1", "at=2026-03-14T15:09:26.535Z"} {
				me.Call("POST", nodetest.FlagPath("k", "/evaluate?revision=1&"+other), `{}`).Refused(422, "revision")
			}
			me.Call("POST", manyPath+"?revision=1", `{}`).Refused(422, "revision")
		},
		"a machine needs flags:read beside flags:evaluate": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			at(me.Machine("flags:evaluate"), "k", "1", `{}`).Refused(403)
			at(me.Machine("flags:evaluate", "flags:read"), "k", "1", `{}`).Want(200)
		},
		"OpenFeature has it in its metadata": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			set := me.Tenant + "/production"
			one := me.Call("POST", ofrepPath+"/k", `{"context":{}}`).Want(200).Object()["metadata"]
			nodetest.Same(t, "of one flag", one, map[string]any{"flagVersion": 1, "version": "1", "flagSetId": set})
			all := me.Call("POST", ofrepPath, `{"context":{}}`).Want(200).Object()
			nodetest.Same(t, "of all flags", all["metadata"], map[string]any{"flagSetId": set})
			nodetest.Same(t, "of each flag", all["flags"].([]any)[0].(map[string]any)["metadata"],
				map[string]any{"flagVersion": 1, "version": "1"})
		},
	}.Run(t)
}
