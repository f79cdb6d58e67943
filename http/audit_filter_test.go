package http_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestAuditTrailIsFiltered(t *testing.T) {
	nodetest.Cases{
		"the filters leave out others, alone and together": func(t *testing.T, me *nodetest.Client) {
			developer := me.Join("developer")
			me.CreateFlag("cafe", map[string]any{"name": "Café"})
			me.CreateFlag("tea", map[string]any{"name": "Green TEA"})
			me.Call("POST", nodetest.FlagPath("tea", "/enable"), nil, "X-Environment", "development").Want(200)
			developer.Call("POST", nodetest.FlagPath("tea", "/enable"), nil, "X-Change-Reason", "The Café opens").Want(200)
			developer.CreateProject("tea")
			all := trail(me, "")
			for query, keep := range map[string]func(e, resource map[string]any) bool{
				"action=flag.enabled":                 func(e, _ map[string]any) bool { return e["action"] == "flag.enabled" },
				"userId=" + developer.UserID:          func(e, _ map[string]any) bool { return e["userId"] == developer.UserID },
				"resourceType=flag":                   func(_, r map[string]any) bool { return r["type"] == "flag" },
				"resourceType=environment":            func(_, r map[string]any) bool { return r["type"] == "environment" },
				"resourceType=invitation":             func(_, _ map[string]any) bool { return false },
				"resourceId=tea":                      func(_, r map[string]any) bool { return r["id"] == "tea" },
				"resourceId=tea&resourceType=project": func(_, _ map[string]any) bool { return false },
				"environment=development":             func(e, _ map[string]any) bool { return e["environment"] == "development" },
				"environment=development&action=flag.enabled": func(e, _ map[string]any) bool {
					return e["environment"] == "development" && e["action"] == "flag.enabled"
				},
				"userId=" + me.UserID + "&resourceType=flag&action=flag.created": func(e, _ map[string]any) bool { return e["action"] == "flag.created" },
				"q=tEA":                        func(_, r map[string]any) bool { return strings.Contains(strings.ToLower(fmt.Sprint(r)), "tea") },
				"q=" + url.QueryEscape("café"): func(e, r map[string]any) bool { return r["id"] == "cafe" || e["reason"] != "" },
				"q=" + developer.UserID:        func(e, r map[string]any) bool { return e["userId"] == developer.UserID || r["id"] == developer.UserID },
				"q=%25":                        func(_, _ map[string]any) bool { return false },
				"q=tea&userId=" + developer.UserID: func(e, r map[string]any) bool {
					return e["userId"] == developer.UserID && strings.Contains(strings.ToLower(fmt.Sprint(r)), "tea")
				},
			} {
				var want []any
				for _, e := range all {
					if keep(e, e["resource"].(map[string]any)) {
						want = append(want, e["id"])
					}
				}
				nodetest.Same(t, query, nodetest.Column(trail(me, "?limit=1&"+query), "id"), append([]any{}, want...))
				nodetest.Same(t, "the export of "+query, nodetest.Column(exported(me, "?"+query), "id"), append([]any{}, want...))
			}
			for query, field := range map[string]string{
				"from=yesterday": "from", "to=1": "to", "user=x": "user", "resourceType=pet": "resourceType", "limit=0": "limit", "limit=1001": "limit", "offset=1": "offset",
				"q=" + strings.Repeat("x", 201): "q", "cursor=x": "cursor",
			} {
				me.Call("GET", auditPath+"?"+query, nil).Refused(422, field)
			}
			for query, field := range map[string]string{"from=yesterday": "from", "format=xml": "format", "after=x": "after", "after=-2": "after", "limit=1": "limit"} {
				me.Call("GET", exportPath+"?"+query, nil).Refused(422, field)
			}
			me.Call("GET", auditPath+"?q=%00", nil).Refused(400)
			for _, path := range []string{auditPath, exportPath} {
				a := me.Call("GET", path+"?from=zz&to=2026-01-02T03:04:51,5Z&action=a&action=b", nil).
					Refused(422, "from", "to", "action")
				wrong := a.Object()["errors"].(map[string]any)
				const words = "must be a time of RFC 3339, such as 2026-03-14T15:09:26.535Z"
				nodetest.Same(t, "what "+path+" says of times", []any{wrong["from"], wrong["to"]}, []any{words, words})
			}
		},
		"a trail can be cut by time": func(t *testing.T, me *nodetest.Client) {
			for i := range 5 {
				me.CreateFlag(fmt.Sprint("k", i), nil)
			}
			all := trail(me, "")
			for _, e := range all {
				at := e["timestamp"].(string)
				var before, since []any
				for _, other := range all {
					if other["timestamp"].(string) < at {
						before = append(before, other["id"])
					} else {
						since = append(since, other["id"])
					}
				}
				nodetest.Same(t, "before", nodetest.Column(trail(me, "?limit=3&to="+at), "id"), append([]any{}, before...))
				nodetest.Same(t, "since", nodetest.Column(trail(me, "?limit=3&from="+at), "id"), append([]any{}, since...))
				nodetest.Same(t, "the export since", nodetest.Column(exported(me, "?from="+at), "id"), append([]any{}, since...))
				nodetest.Same(t, "both", trail(me, "?from="+at+"&to="+at), []any{})
			}
			nodetest.Same(t, "in the future", trail(me, "?from=2999-01-01T00:00:00Z"), []any{})
			nodetest.Same(t, "up to the future", len(trail(me, "?to=2999-01-01T00:00:00%2B01:00")), len(all))
		},
	}.Run(t)
}
