package http_test

import (
	"fmt"
	"slices"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestOrdersOfFlagLists(t *testing.T) {
	nodetest.Cases{
		"each order, page by page, with filters and at a time": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			for _, key := range []string{"b", "d", "a", "c"} {
				me.CreateFlag(key, map[string]any{"projectId": project})
			}
			me.CreateFlag("other", nil)
			for _, key := range []string{"c", "b"} {
				me.Call("PATCH", nodetest.FlagPath(key), `{"tags":["t"]}`).Want(200)
			}
			at := "&" + atNow()
			for sort, want := range map[string][]any{
				"key": {"a", "b", "c", "d"}, "-key": {"d", "c", "b", "a"},
				"createdAt": {"b", "d", "a", "c"}, "-createdAt": {"c", "a", "d", "b"},
				"updatedAt": {"d", "a", "c", "b"}, "-updatedAt": {"b", "c", "a", "d"},
			} {
				checkPages(t, me, "/api/v1/flags?projectId="+project+"&sort="+sort, "key", want)
				checkPages(t, me, nodetest.ProjectFlagsPath(project)+"?sort="+sort, "key", want)
				checkPages(t, me, "/api/v1/flags?projectId="+project+"&sort="+sort+at, "key", want)
			}
			checkPages(t, me, "/api/v1/flags?tag=t&sort=-updatedAt", "key", []any{"b", "c"})
			me.Call("GET", "/api/v1/flags?sort=name", nil).Refused(422, "sort")
		},
		"flags that are alike are in the order of their keys, whichever way": func(t *testing.T, me *nodetest.Client) {
			keys := appendFlags(me, 300)
			slices.Sort(keys)
			for _, sort := range []string{"createdAt", "-createdAt"} {
				var last map[string]any
				for _, flag := range me.Call("GET", "/api/v1/flags?sort="+sort, nil).Want(200).List() {
					if last != nil && last["createdAt"] == flag["createdAt"] && last["key"].(string) > flag["key"].(string) {
						t.Fatalf("by %s %v is before %v", sort, last["key"], flag["key"])
					}
					last = flag
				}
			}
		},
		"a change is seen at once in each order and filter": func(t *testing.T, me *nodetest.Client) {
			for i := range 8 {
				key := fmt.Sprint("k", i)
				me.CreateFlag(key, nil)
				nodetest.Same(t, "the newest", me.FlagKeys("?sort=-createdAt&limit=1"), []string{key})
				me.Call("POST", nodetest.FlagPath("k0", "/enable"), nil).Want(200)
				nodetest.Same(t, "the flags that are on", me.FlagKeys("?enabled=true&sort=-key"), []string{"k0"})
				nodetest.Same(
					t,
					"and in development",
					nodetest.Column(me.Call("GET", "/api/v1/flags?enabled=true", nil, "X-Environment", "development").Want(200).List(),
						"key"),
					[]string{},
				)
				nodetest.Same(t, "the last that changed", me.FlagKeys("?sort=-updatedAt&limit=1"), []string{"k0"})
				me.Call("POST", nodetest.FlagPath("k0", "/disable"), nil).Want(200)
				nodetest.Same(t, "the flags that are on", me.FlagKeys("?enabled=true&sort=-key"), []string{})
				total := me.Call("GET", "/api/v1/flags?limit=1", nil).Want(200).Header.Get("X-Total-Count")
				nodetest.Same(t, "their number", total, fmt.Sprint(i+1))
			}
			me.Call("DELETE", nodetest.FlagPath("k3"), nil).Want(204)
			nodetest.Same(t, "without the deleted one", me.FlagKeys("?sort=-key&limit=5"), []string{"k7", "k6", "k5", "k4", "k2"})
		},
		"another tenant's lists are its own": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("mine", nil)
			other := me.NewTenant("other")
			nodetest.Same(t, "the other's", other.FlagKeys(""), []string{})
			nodetest.Same(t, "mine", me.FlagKeys(""), []string{"mine"})
		},
	}.Run(t)
}
