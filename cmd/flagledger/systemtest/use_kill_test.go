package systemtest

import (
	"net/http"
	"os"
	"syscall"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

// A killed server has saved all usage except the last five seconds, and the next server adds to it.
func TestKillingTheServerLosesTheLastUsesAlone(t *testing.T) {
	t.Parallel()
	p := (&nodetest.Program{Binary: os.Args[0]}).In(t)
	settings := []string{serveSetting + "=1", "FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t)}
	running := p.Serve(settings...)
	me := p.Service().SignUp(nodetest.Address())
	me.CreateFlag("k", nil)
	evaluations := func() (n int) {
		var body struct{ Evaluations int }
		metrics := me.Call("GET", "/api/v1/flags/k/metrics?interval=day", nil)
		if metrics.Status != http.StatusServiceUnavailable { // the read models may not be there yet
			metrics.Want(200).Decode(&body)
		}
		return body.Evaluations
	}
	evaluate := func(n int) {
		for range n {
			me.Evaluate("k", `{}`).Want(200)
		}
	}
	least, most := 0, 0
	for range 2 {
		evaluate(20)
		least, most = least+20, most+20
		me.Service.Eventually("the evaluations are written down", func() bool { return evaluations() >= least })
		evaluate(5)
		most += 5
		running.Kill()
		running = p.Serve(settings...)
		me.Service.Eventually("what was written down is there", func() bool { return evaluations() >= least })
	}
	evaluate(3)
	least, most = least+3, most+3
	me.Service.Eventually("those of the last server are added", func() bool { return evaluations() >= least })
	if n := evaluations(); n > most {
		t.Errorf("%d evaluations are written down, and %d were made", n, most)
	}
}

// A stopped server has saved all usage.
func TestStoppingTheServerLosesNoUse(t *testing.T) {
	t.Parallel()
	p := nodetest.Build(t)
	settings := []string{"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t)}
	running := p.Serve(settings...)
	me := p.Service().SignUp(nodetest.Address())
	me.CreateFlag("k", nil)
	for range 4 {
		me.Evaluate("k", `{}`).Want(200)
	}
	if code := running.End(syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	p.Serve(settings...)
	var metrics *nodetest.Answer
	me.Service.Eventually("the read models are there, which the first server may not have built to the end", func() bool {
		metrics = me.Call("GET", "/api/v1/flags/k/metrics?interval=day", nil)
		return metrics.Status != http.StatusServiceUnavailable
	})
	metrics.Want(200).Shows(map[string]any{"evaluations": 4})
}
