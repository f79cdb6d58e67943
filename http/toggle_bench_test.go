package http_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// BenchmarkToggle toggles flags over HTTP. A client waits for each response, which waits for read models and snapshot.
func BenchmarkToggle(b *testing.B) {
	me := nodetest.New(b).SignUp("me@example.com")
	b.Run("alone", func(b *testing.B) {
		t := newToggler(b, me, "alone")
		for b.Loop() {
			t.toggle()
		}
		t.took.Report(b, 50)
		t.took.Report(b, 99)
	})
	for name, tenants := range map[string]int{"writers=32": 1, "writers=32/tenants=8": 8} {
		b.Run(name, func(b *testing.B) { benchWriters(b, me, tenants) })
	}
	for name, write := range map[string]func(*testing.B, *writer.Writer, commands.FlagRef){
		"10000 events": writeManyEvents, "270 KB of rules": writeFatRules,
	} {
		old := newToggler(b, me.NewTenant(name), "old")
		w := writer.NewWriter(me.Service.Store(), writer.NoWait, writer.NoQuotas{}, time.Now)
		write(b, w, commands.FlagRef{TenantID: old.client.Tenant, Key: old.key})
		b.Run(name, func(b *testing.B) {
			fresh := newToggler(b, old.client, "fresh")
			old.warm()
			b.ResetTimer()
			for range b.N {
				fresh.toggle()
				old.toggle()
			}
			old.took.Report(b, 50)
			b.ReportMetric(old.took.over(&fresh.took, 50), "times-fresh")
		})
		if name != "270 KB of rules" {
			continue
		}
		b.Run("beside 20 writers of it", func(b *testing.B) {
			var change atomic.Int64
			benchBeside(b, me.NewTenant("beside"), func() {
				(&toggler{b: b, client: old.client, key: old.key, on: change.Add(1)%2 == 0}).toggle()
			})
		})
		body, change := fatRules(b, old.client), atomic.Int64{}
		b.Run("beside 20 writers of rules", func(b *testing.B) {
			benchBeside(b, me.NewTenant("beside"), func() {
				named := strings.Replace(body, `"name":"`, fmt.Sprintf(`"name":"%d `, change.Add(1)), 1)
				if r := old.client.Attempt("PUT", nodetest.FlagPath("rules", "/rules"), named); r.Status != 200 {
					b.Error(r)
				}
			})
		})
	}
}

// benchWriters toggles flags of some tenants with wrk over 32 connections, in rounds of a second.
func benchWriters(b *testing.B, me *nodetest.Client, tenants int) {
	b.Helper()
	if _, err := exec.LookPath("wrk"); err != nil {
		b.Skip("wrk is not installed (Debian: apt-get install wrk; Homebrew: brew install wrk)")
	}
	clients, ids := make([]*nodetest.Client, tenants), make([]string, tenants)
	for i := range clients {
		clients[i] = me.NewTenant(fmt.Sprintf("writers %d of %d", i, tenants))
		ids[i] = clients[i].Tenant
	}
	for i := range 320 {
		clients[i%tenants].CreateFlag(fmt.Sprint("w-", i), nil)
	}
	round := func() (perSecond, medianMS float64) {
		wrk := exec.CommandContext(b.Context(), "wrk", "-t1", "-c32", "-d1s", "-s", "testdata/toggle.lua", me.Service.URL)
		wrk.Env = append(os.Environ(), "BENCH_TOKEN="+me.Token, "BENCH_TENANTS="+strings.Join(ids, ","))
		printed, err := wrk.CombinedOutput()
		var answers, failed, within, median float64
		if _, tail, found := strings.Cut(string(printed), "answers"); found {
			_, err = fmt.Sscan(strings.NewReplacer("errors", "", "within", "", "median", "").Replace(tail), &answers, &failed,
				&within, &median)
		}
		if err != nil || answers == 0 || failed > 0 {
			b.Fatalf("wrk: %v\n%s", err, printed)
		}
		return answers / within * 1e6, median / 1000
	}
	round() // warms up
	var each, medians []float64
	for b.Loop() {
		perSecond, medianMS := round()
		each, medians = append(each, perSecond), append(medians, medianMS)
	}
	b.ReportMetric(median(each), "writes/s")
	b.ReportMetric(median(medians), "p50-ms")
	b.ReportMetric(0, "ns/op")
}

// benchBeside toggles a flag of one tenant alone, and while 20 clients of another change something, in turn: two
// seconds each, five times, so that both p99 come from thousands of calls in the same minute.
func benchBeside(b *testing.B, me *nodetest.Client, change func()) {
	b.Helper()
	t := newToggler(b, me, "beside")
	var alone, beside samples
	toggle := func(into *samples) {
		t.took.List = nil
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			t.toggle()
		}
		into.List = append(into.List, t.took.List...)
	}
	for b.Loop() {
		for range 5 {
			toggle(&alone)
			stop := make(chan struct{})
			var running sync.WaitGroup
			for range 20 {
				running.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							change()
						}
					}
				})
			}
			toggle(&beside)
			close(stop)
			running.Wait()
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(beside.List)), "samples")
	b.ReportMetric(float64(alone.Percentile(99).Microseconds())/1000, "alone-p99-ms")
	beside.Report(b, 99)
	b.ReportMetric(beside.over(&alone, 50), "p50-times-alone")
	b.ReportMetric(beside.over(&alone, 99), "p99-times-alone")
}

// fatRules gives the flag "rules" 270 KB of rules, 60 with 150 values each, and returns them as they are sent back.
func fatRules(b *testing.B, c *nodetest.Client) (body string) {
	b.Helper()
	newToggler(b, c, "rules")
	var rules []map[string]any
	for i := range 60 {
		var values []string
		for j := range fatValues {
			values = append(values, fatValue(i, j))
		}
		rules = append(rules, map[string]any{
			"name":       "n",
			"conditions": []any{map[string]any{"attribute": "plan", "op": "in", "values": values}},
			"serve":      map[string]any{"value": true},
		})
	}
	sent, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		b.Fatal(err)
	}
	r := c.Attempt("PUT", nodetest.FlagPath("rules", "/rules"), string(sent))
	if r.Status != 200 {
		b.Fatal(r)
	}
	return r.Body
}

// toggler switches a flag on and off in turn.
type toggler struct {
	b      *testing.B
	client *nodetest.Client
	key    string
	on     bool
	took   samples
}

type samples struct{ nodetest.Samples }

// over returns the ratio of a percentile to another toggler's.
func (s *samples) over(others *samples, percent int) float64 {
	return float64(s.Percentile(percent)) / float64(others.Percentile(percent))
}

// newToggler creates a flag to toggle.
func newToggler(b *testing.B, c *nodetest.Client, key string) *toggler {
	b.Helper()
	if r := c.Attempt("POST", "/api/v1/flags", `{"key":"`+key+`","type":"boolean"}`); r.Status != 201 && r.Status != 409 {
		b.Fatal(r)
	}
	t := &toggler{b: b, client: c, key: key}
	t.warm()
	return t
}

// warm toggles without counting, until connections are open and states cached.
func (t *toggler) warm() {
	for range 20 {
		t.toggle()
	}
	t.took.List = nil
}

func (t *toggler) toggle() {
	t.on = !t.on
	r := t.client.Attempt("POST", nodetest.FlagPath(t.key, map[bool]string{true: "/enable", false: "/disable"}[t.on]), "")
	if r.Status != 200 {
		t.b.Error(r)
	}
	t.took.Add(r.Took)
}

// writeManyEvents toggles a flag 10,000 times.
func writeManyEvents(b *testing.B, w *writer.Writer, ref commands.FlagRef) {
	b.Helper()
	for i := range 10_000 {
		do(b, w, commands.SwitchFlag{FlagRef: ref, Environment: events.EnvironmentRef{ID: "e", Name: "e"}, On: i%2 == 0})
	}
}

// writeFatRules gives a flag 270 KB of rules, and changes each of them a hundred times.
func writeFatRules(b *testing.B, w *writer.Writer, ref commands.FlagRef) {
	b.Helper()
	set := commands.SetRules{FlagRef: ref, Environment: events.EnvironmentRef{ID: "e", Name: "e"}}
	for i := range 60 {
		condition := events.Condition{Attribute: "plan", Op: events.In}
		for j := range fatValues {
			condition.Values = append(condition.Values, json.RawMessage(strconv.Quote(fatValue(i, j))))
		}
		set.Rules = append(set.Rules, commands.NewRule{
			NewID:      commands.NewID(),
			Salt:       commands.NewSalt(),
			Conditions: []events.Condition{condition},
			Serve:      &commands.NewServe{Value: json.RawMessage("true")},
		})
	}
	do(b, w, set)
	for i := range set.Rules {
		set.Rules[i].ID = &set.Rules[i].NewID
	}
	for i := range 100 {
		set.Rules[i%60].Name = fmt.Sprint("changed ", i)
		do(b, w, set)
	}
}

// fatValues is the number of values in each of the 60 rules.
const fatValues = 150

func fatValue(rule, n int) string { return fmt.Sprintf("value of a long list %02d %04d", rule, n) }

func do(b *testing.B, w *writer.Writer, cmd commands.Command[state.Flag]) {
	b.Helper()
	if _, _, err := writer.Do(
		b.Context(), w, writer.By{Actor: events.Actor{Kind: events.UserActor, ID: "u"}}, cmd,
	); err != nil {
		b.Fatal(err)
	}
}
