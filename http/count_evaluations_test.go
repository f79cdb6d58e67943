package http_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/cmd/flagledger/nodetest"
)

// wantCounts waits until the metrics show exactly these numbers of evaluations and prefetches.
func wantCounts(c *nodetest.Client, path string, evaluations, prefetches int) {
	c.Service.T.Helper()
	c.Service.Eventually(
		fmt.Sprintf("%s shows %d evaluations and %d prefetches", path, evaluations, prefetches),
		func() bool {
			shown := readMetrics(c, path)
			return shown.Evaluations == evaluations && shown.Prefetches == prefetches
		},
	)
}

func TestEvaluationsAreCounted(t *testing.T) {
	nodetest.Cases{
		"evaluations by whom and what, prefetches, and nothing else": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag(
				"k",
				map[string]any{
					"type":            "string",
					"defaultValue":    "none",
					"flag_variations": []map[string]any{{"name": "a", "value": "A", "weight": 1}},
				},
			)
			me.CreateFlag("other", nil)
			machine := me.Machine("flags:evaluate")
			me.Evaluate("k", `{"targetingKey":"u"}`).Want(200) // off
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			me.Evaluate("k", `{"targetingKey":"u"}`).Want(200)
			machine.Evaluate("k", `{"targetingKey":"u"}`).Want(200)
			me.Call("POST", manyPath, `{"targetingKey":"u","flagKeys":["k","other","k","none"]}`).Want(200)
			callOFREP(machine, "k", `{"targetingKey":"u"}`).Want(200)

			me.Call("POST", manyPath, `{"targetingKey":"u"}`).Want(200)
			tag := callOFREP(me, "", `{"targetingKey":"u"}`).Want(200).Header.Get("ETag")
			callOFREP(me, "", `{"targetingKey":"u"}`, "If-None-Match", tag).Want(304)

			me.Call("POST", manyPath, `{"flagKeys":[]}`).Want(200)
			me.Evaluate("k", `{}`).Want(422)
			callOFREP(me, "k", `{}`).Want(400)
			callOFREP(me, "", `{}`).Want(200) // which could not evaluate k
			me.Call("POST", manyPath, `{"flagKeys":["k"]}`).Want(200)
			for _, query := range []string{"?preview=true", "?preview=true&explain=true", "?explain=true", "?version=1", "?at=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))} {
				me.Call("POST", nodetest.FlagPath("k", "/evaluate", query), `{"targetingKey":"u"}`).Want(200)
			}
			me.Call("POST", manyPath+"?preview=true", `{"targetingKey":"u"}`).Want(200)
			me.Call("POST", manyPath+"?preview=true", `{"targetingKey":"u","flagKeys":["k"]}`).Want(200)
			me.Call("POST", "/api/flags/k/evaluate?preview=true", `{"userId":"u"}`).Want(200)
			me.Call("POST", manyPath+"?at="+url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano)), `{"targetingKey":"u","flagKeys":["k"]}`).
				Want(200)

			wantCounts(me, metricsPath("k", ""), 5, 3)
			wantCounts(me, metricsPath("other", ""), 1, 4)
			wantCounts(me, tenantMetricsPath(me, ""), 6, 4)
			wantCounts(me, metricsPath("k", "?environment=development"), 0, 0)
			shown, ofTenant := readMetrics(me, metricsPath("k", "")), readMetrics(me, tenantMetricsPath(me, ""))
			nodetest.Same(t, "reasons", shown.Reasons, map[string]int{"OFF": 1, "FALLTHROUGH": 4})
			nodetest.Same(t, "what was served", shown.Outcomes, map[string]int{"value none": 1, "a": 4})
			nodetest.Same(t, "the tenant's reasons", ofTenant.Reasons, map[string]int{"OFF": 2, "FALLTHROUGH": 4})
			if shown.Clients[""] != 3 || len(shown.Clients) != 2 || ofTenant.Clients[""] != 4 || len(ofTenant.Clients) != 2 {
				t.Errorf("the flag was evaluated by %v, and flags of the tenant by %v", shown.Clients, ofTenant.Clients)
			}
		},
		"an archived flag, but not where it is none": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "string", "defaultValue": "none"})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"archived"}`).Want(200)
			callOFREP(me, "k", `{}`).Want(404)
			callOFREP(me, "", `{}`).Want(200) // without it
			me.Evaluate("k", `{}`).Want(200)
			wantCounts(me, metricsPath("k", ""), 1, 0)
			shown := readMetrics(me, metricsPath("k", ""))
			nodetest.Same(t, "reasons", shown.Reasons, map[string]int{"ARCHIVED": 1})
			nodetest.Same(t, "what was served", shown.Outcomes, map[string]int{"value none": 1})
		},
		"in each environment": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate"), `{"environment":"development"}`).Want(200)
			callOFREP(me, "k", `{}`, "X-Environment", "development").Want(200)
			me.Evaluate("k", `{}`).Want(200)
			wantCounts(me, metricsPath("k", "?environment=development"), 2, 0)
			wantCounts(me, metricsPath("k", "?environment=production"), 1, 0)
			wantCounts(me, metricsPath("k", ""), 3, 0)
		},
	}.Run(t)
}

func TestListsOfUnusedFlagsFollowCounts(t *testing.T) {
	nodetest.Cases{
		"where flags are evaluated that a list of pages does not show then, the next page goes on behind them": func(t *testing.T, me *nodetest.Client) {
			for _, key := range []string{"a", "b", "c"} {
				me.CreateFlag(key, nil)
			}
			never := "/api/v1/flags?limit=1&evaluatedBefore=" + url.QueryEscape(
				time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
			)
			page := me.Call("GET", never, nil).Want(200)
			nodetest.Same(t, "the first page", page.List()[0]["key"], any("a"))
			me.Evaluate("b", `{}`).Want(200)
			wantCounts(me, metricsPath("b", ""), 1, 0)
			var keys []any
			for link := page.Header.Get("Link"); link != ""; {
				next, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
				page = me.Call("GET", next, nil).Want(200)
				for _, flag := range page.List() {
					keys = append(keys, flag["key"])
				}
				link = page.Header.Get("Link")
			}
			nodetest.Same(t, "further pages", keys, []any{"c"})
		},
		"not in one that is deleted, at once in lists that were read before": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Evaluate("k", `{}`, "X-Environment", "development").Want(200)
			wantCounts(me, metricsPath("k", ""), 1, 0)
			never := "?evaluatedBefore=" + url.QueryEscape(time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
			nodetest.Same(t, "flags that are not evaluated", me.FlagKeys(never), []any{})
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/development", nil).Want(204)
			nodetest.Same(t, "flags that are not evaluated any more", me.FlagKeys(never), []any{"k"})
		},
	}.Run(t)
}

func TestCountsOfDeletedFlagsAndTenants(t *testing.T) {
	nodetest.Cases{
		"a flag that is made again starts from nothing, and the tenant's counts stay": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Evaluate("k", `{}`).Want(200)
			me.Call("POST", manyPath, `{}`).Want(200)
			wantCounts(me, metricsPath("k", ""), 1, 1)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			me.CreateFlag("k", nil)
			wantCounts(me, metricsPath("k", ""), 0, 0)
			me.Evaluate("k", `{}`).Want(200)
			wantCounts(me, metricsPath("k", ""), 1, 0)
			wantCounts(me, tenantMetricsPath(me, ""), 2, 1)
			nodetest.Same(t, "what it served", readMetrics(me, metricsPath("k", "")).Outcomes, map[string]int{"value false": 1})
		},
		"a tenant that is deleted leaves nothing": func(t *testing.T, me *nodetest.Client) {
			me = me.NewTenant("to be deleted")
			me.CreateFlag("k", nil)
			me.Evaluate("k", `{}`).Want(200)
			wantCounts(me, metricsPath("k", ""), 1, 0)
			pool, err := pgxpool.New(t.Context(), me.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			rows := func() (n int) {
				err := pool.QueryRow(t.Context(), `select (select count(*) from keep.flag_hours where tenant_id = $1) + (select count(*) from keep.tenant_hours where tenant_id = $1)
					+ (select count(*) from keep.flag_uses where tenant_id = $1) + (select count(*) from keep.flag_outcomes where tenant_id = $1)`, me.Tenant).
					Scan(&n)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			nodetest.Same(t, "rows of the tenant", rows(), 4)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			nodetest.Same(t, "rows of the tenant once it is deleted", rows(), 0)
		},
	}.Run(t)
}

func TestCountsWhileFlagsChange(t *testing.T) {
	nodetest.Cases{
		"flags that are changed, deleted and made again while 16 callers use them in every way": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("stays", nil)
			machine := me.Machine("flags:evaluate")
			var mayGo, stays, bulk, byMachine atomic.Int64
			ways := []func() nodetest.Reply{
				func() nodetest.Reply {
					a := me.Attempt("POST", nodetest.FlagPath("goes", "/evaluate"), `{}`)
					if a.Status == 200 {
						mayGo.Add(1)
					}
					return a
				},
				func() nodetest.Reply {
					a := machine.Attempt("POST", ofrepPath+"/goes", `{"context":{"targetingKey":"u"}}`)
					if a.Status == 200 {
						mayGo.Add(1)
						byMachine.Add(1)
					}
					return a
				},
				func() nodetest.Reply {
					a := machine.Attempt("POST", manyPath, `{"flagKeys":["goes","stays"]}`)
					if a.Status == 200 {
						stays.Add(1)
						byMachine.Add(1)
						if !strings.Contains(a.Body, `"errors"`) {
							mayGo.Add(1)
							byMachine.Add(1)
						}
					}
					return a
				},
				func() nodetest.Reply {
					a := me.Attempt("POST", ofrepPath, `{"context":{"targetingKey":"u"}}`)
					if a.Status == 200 {
						bulk.Add(1)
					}
					return a
				},
			}
			var callers sync.WaitGroup
			done := make(chan struct{})
			for i := range 16 {
				callers.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						if a := ways[i%len(ways)](); a.Status != 200 && a.Status != 404 {
							t.Error(a)
						}
					}
				})
			}
			for range 10 {
				me.CreateFlag("goes", nil)
				before := mayGo.Load()
				for _, change := range []string{"/enable", "/disable"} {
					for _, key := range []string{"goes", "stays"} {
						me.Call("POST", nodetest.FlagPath(key, change), nil).Want(200)
					}
				}
				me.Service.Eventually("the flag is evaluated", func() bool { return mayGo.Load() > before })
				me.Call("DELETE", nodetest.FlagPath("goes"), nil).Want(204)
			}
			close(done)
			callers.Wait()
			me.CreateFlag("goes", nil)
			me.Evaluate("goes", `{}`).Want(200)
			wantCounts(me, metricsPath("goes", ""), 1, 0)
			wantCounts(me, metricsPath("stays", ""), int(stays.Load()), int(bulk.Load()))
			wantCounts(me, tenantMetricsPath(me, ""), int(mayGo.Load()+stays.Load())+1, int(bulk.Load()))
			ofTenant := readMetrics(me, tenantMetricsPath(me, ""))
			nodetest.Same(t, "evaluations by people", ofTenant.Clients[""], int(mayGo.Load()+stays.Load()-byMachine.Load())+1)
		},
	}.Run(t)
}

// Each flag of a response is counted once, before the response is sent: the reader may be slow or disconnect.
func TestEvaluationsOfManyFlagsCountBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	keys := fill(me, 30) // the first three are the first piece
	first, last := metricsPath(keys[0], ""), metricsPath(keys[29], "")
	begin := func(body string, leaves bool) (goOn func() (broken bool)) {
		t.Helper()
		to := &reader{gate: make(chan struct{}), waiting: &atomic.Int64{}, leaves: leaves}
		done := make(chan bool, 1)
		go func() { done <- answer(me, "POST", manyPath, body, to) }()
		me.Service.Eventually("a piece is written", func() bool { return to.waiting.Load() == 1 })
		return func() bool {
			close(to.gate)
			return <-done
		}
	}
	named := `{"flagKeys":["` + strings.Join(keys, `","`) + `"]}`
	// the evaluations and prefetches of the first flag, the last flag and the tenant
	want := func(of [3][2]int) {
		t.Helper()
		for i, path := range []string{first, last, tenantMetricsPath(me, "")} {
			wantCounts(me, path, of[i][0], of[i][1])
		}
	}
	goOn := begin(named, false)
	want([3][2]int{{1, 0}, {0, 0}, {3, 0}})
	if goOn() {
		t.Error("the answer is broken off")
	}
	want([3][2]int{{1, 0}, {1, 0}, {30, 0}})
	goOn = begin(named, true)
	want([3][2]int{{2, 0}, {1, 0}, {33, 0}})
	if !goOn() {
		t.Error("the answer looks whole")
	}
	goOn = begin("{}", false)
	want([3][2]int{{2, 1}, {1, 0}, {33, 1}})
	if goOn() {
		t.Error("the answer for all flags is broken off")
	}
	want([3][2]int{{2, 1}, {1, 1}, {33, 1}})
	goOn = begin(`{"flagKeys":["k029"]}`, true) // also the last piece
	want([3][2]int{{2, 1}, {2, 1}, {34, 1}})
	goOn()
}
