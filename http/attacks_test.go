package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
)

// BenchmarkAttacks measures what the tests of this file show without a clock.

func TestCostlyEvaluationsOfATenantLetOthersPass(t *testing.T) {
	s := nodetest.New(t)
	attacker, other := s.SignUp("me@example.com"), s.SignUp("other@example.com")
	const clients, flags = 20, 5 // each flag takes milliseconds: together more than a second
	for i := range flags {
		key := fmt.Sprintf("costly-%d", i)
		attacker.CreateEnabledFlag(key, nil)
		attacker.SetRules(key, costlyRules).Want(200)
	}
	other.CreateEnabledFlag("k", nil)
	var begun atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for begun.Add(1); !over.Load(); {
				// On a busy machine the wait for a slot or the evaluation may time out.
				if reply := attacker.Attempt(
					"POST", manyPath, `{"attributes":{"a":"`+strings.Repeat("a", 4000)+`"}}`,
				); reply.Status != 200 && reply.Status != 429 &&
					reply.Status != 503 {
					t.Errorf("an attacker is answered %v", reply)
				}
			}
		})
	}
	defer all.Wait()
	defer over.Store(true)
	s.Eventually("the attack is under way", func() bool { return begun.Load() == clients })
	other.Evaluate("k", `{"targetingKey":"u"}`).Want(200)
	nodetest.Same(t, "the evaluations of another",
		other.Call("POST", manyPath, `{}`).Want(200).Object()["flags"].(map[string]any)["k"].(map[string]any)["reason"].(string),
		"FALLTHROUGH")
	other.Call("POST", ofrepPath, `{"context":{}}`).Want(200)
	nodetest.Same(t, "the flags of another", other.FlagKeys(""), []string{"k"})
	other.CreateFlag("l",
		map[string]any{"description": "large", "type": "string", "defaultValue": strings.Repeat("v", 40_000)})
}

func TestReadsOfATenantThatHangLeaveOthersTheirs(t *testing.T) {
	s := nodetest.New(t)
	attacker, other := s.SignUp("me@example.com"), s.SignUp("other@example.com")
	other.CreateProject("P")
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table read.flags"); err != nil {
		t.Fatal(err)
	}
	const clients = 110 // more than one reader and 100 that wait
	var refused atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			switch reply := attacker.Attempt("GET", "/api/v1/flags", ""); {
			case reply.Status == http.StatusTooManyRequests && reply.Header.Get("Retry-After") == "1" && reply.Header.Get("RateLimit-Reset") == "1":
				refused.Add(1)
			case reply.Status != http.StatusOK && reply.Status != http.StatusServiceUnavailable:
				// Postgres cancels it after 10 s
				t.Errorf("an attacker is answered %v", reply)
			}
		})
	}
	s.Eventually("those that find too many waiting are refused", func() bool { return refused.Load() > 0 })
	nodetest.Same(t, "the environments of another",
		len(other.Call("GET", "/api/v1/tenants/"+other.Tenant+"/environments", nil).Want(200).JSON().([]any)) > 0, true)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	attacker.Call("GET", "/api/v1/flags", nil).Want(200)
}

func TestLargeChangesOfATenantAreMadeByTurns(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	value := strings.Repeat("v", 40_000)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if reply := me.Attempt(
				"POST", "/api/v1/flags", fmt.Sprintf(`{"key":"k%d","type":"string","defaultValue":%q}`, i, value),
			); reply.Status != http.StatusCreated &&
				reply.Status != http.StatusTooManyRequests {
				t.Errorf("it is answered %v", reply)
			}
		})
	}
	all.Wait()
	me.CreateFlag("last", map[string]any{"type": "string", "defaultValue": value})
}
