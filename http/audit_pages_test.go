package http_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestCursorOfAuditTrail(t *testing.T) {
	nodetest.Cases{
		"a cursor is good for one trail": func(_ *testing.T, me *nodetest.Client) {
			next := linked(me.Call("GET", auditPath+"?limit=2", nil).Want(200))
			me.Call("GET", next, nil).Want(200)
			me.NewTenant("other").Call("GET", next, nil).Refused(422, "cursor")
			for _, text := range []string{me.Tenant, me.Tenant + " ", me.Tenant + " x", me.Tenant + " -1", me.Tenant + " 1 1", me.Tenant + " 99999999999999999999"} {
				me.Call("GET", auditPath+"?cursor="+base64.RawURLEncoding.EncodeToString([]byte(text)), nil).Refused(422, "cursor")
			}
			me.Call("GET", auditPath+"?cursor="+base64.RawURLEncoding.EncodeToString([]byte(me.Tenant+" 9223372036854775807")), nil).
				Want(200)
		},
	}.Run(t)
}

// While facts arrive, a walk along the links with any page size finds each entry after its start exactly once. So does
// an export up to its own end.
func TestPagesNeitherSkipNorRepeatWhileFactsArrive(t *testing.T) {
	nodetest.BothEngines(t, testPagesNeitherSkipNorRepeatWhileFactsArrive)
}

func testPagesNeitherSkipNorRepeatWhileFactsArrive(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	other := me.NewTenant("other")
	const writers = 4
	for i := range writers {
		me.CreateEnabledFlag(fmt.Sprint("k", i), nil)
		other.CreateEnabledFlag(fmt.Sprint("k", i), nil)
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for on := false; ; on = !on {
				select {
				case <-stop:
					return
				default:
				}
				for _, c := range []*nodetest.Client{me, other} {
					if r := c.Attempt(
						"POST", nodetest.FlagPath(fmt.Sprint("k", i), map[bool]string{true: "/enable", false: "/disable"}[on]), "",
					); r.Status != 200 {
						t.Error(r)
					}
				}
			}
		})
	}
	found := func(query string) []any { return nodetest.Column(exported(me, "?"+query), "id") }
	type walk struct {
		query           string
		paged, exported []any
	}
	var walks []walk
	for range 2 {
		for _, query := range []string{"", "action=flag.enabled", "resourceId=k1", "q=k2", "resourceType=flag&userId=" + me.UserID} {
			w := walk{query: query}
			for next := auditPath + "?limit=7&" + query; next != "" && len(w.paged) < 100; {
				page := me.Call("GET", next, nil).Want(200)
				w.paged = append(w.paged, nodetest.Column(page.List(), "id")...)
				next = anyLimit.ReplaceAllString(linked(page), fmt.Sprint("limit=", 1+rand.IntN(20)))
			}
			w.exported = found(query)
			walks = append(walks, w)
		}
	}
	close(stop)
	writing.Wait()
	for _, w := range walks {
		all := found(w.query)
		if len(w.exported) == 0 || len(all) < len(w.exported) || !slices.Equal(all[:len(w.exported)], w.exported) {
			t.Errorf("the export of %q is no beginning of what there is", w.query)
		}
		slices.Reverse(all)
		start := slices.Index(all, w.paged[0])
		if start < 0 || !slices.Equal(all[start:min(start+len(w.paged), len(all))], w.paged) {
			t.Errorf("the pages of %q skip or repeat entries", w.query)
		}
	}
}

var anyLimit = regexp.MustCompile(`limit=\d+`)
