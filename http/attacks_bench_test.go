package http_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

// attackFor is the duration of each attack and of the quiet time after it. FLAGLEDGER_ATTACK=30s extends it.
func attackFor(b *testing.B) time.Duration {
	b.Helper()
	text := os.Getenv("FLAGLEDGER_ATTACK")
	if text == "" {
		return 5 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		b.Fatalf("FLAGLEDGER_ATTACK: %v", err)
	}
	return d
}

// attack is a load by many clients of one tenant.
type attack struct {
	name    string
	clients int
	method  string
	path    string
	body    string
	unread  bool // the clients do not read the responses
	past    bool // uses the tenant of armedWithPast, with its two times in turn in place of TIME
	spent   bool // uses the tenant of armedWithSpentDay, with enable and disable in turn in place of TIME
	crowd   bool // each call comes from a different network, without a token
	graph   bool // uses the tenant of armedWithGraph
	stolen  bool // each call comes from a different network, with the browser key of armedWithBrowserKey
}

const costlyRules = `{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["(?:a?){400}b"]}],"serve":{"value":false}}]}`

// attacks are loads that once hurt other tenants. They need the data of armed.
func attacks() []attack {
	longText := strings.Repeat("a", 4000)
	values := make([]string, 900)
	for i := range values {
		values[i] = fmt.Sprintf("%q", fmt.Sprintf("%095d", i))
	}
	rule := `{"conditions":[{"attribute":"a","op":"in","values":[` + strings.Join(values, ",") + `]}],"serve":{"value":false}}`
	manyValues := `{"rules":[` + strings.Join([]string{rule, rule, rule}, ",") + `]}`
	return []attack{
		{name: "20-evaluations-unread", clients: 20, method: "POST", path: manyPath, body: `{}`, unread: true},
		{name: "20-ofrep-unread", clients: 20, method: "POST", path: ofrepPath, body: `{"context":{}}`, unread: true},
		{name: "15-lists-unread", clients: 15, method: "GET", path: "/api/v1/flags", unread: true},
		{name: "15-lists", clients: 15, method: "GET", path: "/api/v1/flags"},
		{name: "history-unread", clients: 1, method: "GET", path: nodetest.FlagPath("storied", "/history"), unread: true},
		{name: "5-histories", clients: 5, method: "GET", path: nodetest.FlagPath("storied", "/history")},
		{
			name:    "20-rules-of-270KB",
			clients: 20,
			method:  "PUT",
			path:    nodetest.FlagPath("ruled-N", "/rules"),
			body:    manyValues,
		},
		{
			name:    "60-creations-of-1MB",
			clients: 60,
			method:  "POST",
			path:    "/api/v1/flags",
			body:    `{"key":"KEY","type":"string","defaultValue":"` + strings.Repeat("v", 1_000_000) + `"}`,
		},
		{
			name:    "60-creations-of-60KB",
			clients: 60,
			method:  "POST",
			path:    "/api/v1/flags",
			body:    `{"key":"KEY","type":"string","defaultValue":"` + strings.Repeat("v", 60_000) + `"}`,
		},
		{
			name:    "40-costly-evaluations",
			clients: 40,
			method:  "POST",
			path:    manyPath,
			body:    `{"attributes":{"a":"` + longText + `"}}`,
		},
		{
			name:    "40-costly-single",
			clients: 40,
			method:  "POST",
			path:    nodetest.FlagPath("costly-0", "/evaluate"),
			body:    `{"attributes":{"a":"` + longText + `"}}`,
		},
		{
			name:    "10-evaluations-of-the-past",
			clients: 10,
			method:  "POST",
			path:    manyPath + "?at=TIME",
			body:    `{}`,
			past:    true,
		},
		{
			name:    "10-reads-of-the-past",
			clients: 10,
			method:  "GET",
			path:    nodetest.FlagPath("fat-N", "/rules?at=TIME"),
			past:    true,
		},
		{
			name:    "4-reverts-of-all",
			clients: 4,
			method:  "POST",
			path:    "/api/v1/flags/revert",
			body:    `{"at":"TIME"}`,
			past:    true,
		},
		{
			name:    "40-wrong-passwords",
			clients: 40,
			method:  "POST",
			path:    "/auth/signin",
			body:    `{"email":"KEY@example.com","password":"wrong horse"}`,
			crowd:   true,
		},
		{
			name:    "40-wrong-passwords-of-another",
			clients: 40,
			method:  "POST",
			path:    "/auth/signin",
			body:    `{"email":"VICTIM","password":"wrong horse"}`,
			crowd:   true,
		},
		{
			name:    "40-password-mails",
			clients: 40,
			method:  "POST",
			path:    "/api/v1/auth/forgot-password",
			body:    `{"email":"VICTIM"}`,
			crowd:   true,
		},
		{
			name:    "20-invitations",
			clients: 20,
			method:  "POST",
			path:    "/api/v1/tenants/TENANT/users",
			body:    `{"email":"KEY@example.com","role":"viewer"}`,
		},
		{
			name:    "20-rewrites-past-a-day",
			clients: 20,
			method:  "PATCH",
			path:    nodetest.FlagPath("flag-N"),
			body:    `{"defaultValue":"KEY` + strings.Repeat("v", 20_000) + `"}`,
			spent:   true,
		},
		{
			name:    "20-switches-past-a-day",
			clients: 20,
			method:  "POST",
			path:    nodetest.FlagPath("flag-N", "/TIME"),
			spent:   true,
		},
		{
			name:    "20-changes-of-a-segment-of-all",
			clients: 20,
			method:  "POST",
			path:    segmentPath("leaf", "/members"),
			body:    `{"list":"included","add":["KEY"]}`,
			graph:   true,
		},
		{
			name:    "16-changes-of-prerequisites",
			clients: graphWidth,
			method:  "PUT",
			path:    nodetest.FlagPath("0-N", "/prerequisites"),
			body:    `{"prerequisites":[` + allOfLevel(1) + `,{"flagKey":"text","serves":[{"value":"KEY"}]}]}`,
			graph:   true,
		},
		{
			name:    "40-explained-graphs",
			clients: 40,
			method:  "POST",
			path:    nodetest.FlagPath("0-0", "/evaluate?explain=true"),
			body:    `{"targetingKey":"ada"}`,
			graph:   true,
		},
		{
			name:    "40-evaluations-with-a-stolen-key",
			clients: 40,
			method:  "POST",
			path:    nodetest.FlagPath("seen-0", "/evaluate"),
			body:    `{}`,
			stolen:  true,
		},
		{
			name:    "40-bulk-evaluations-with-a-stolen-key",
			clients: 40,
			method:  "POST",
			path:    ofrepPath,
			body:    `{"context":{}}`,
			stolen:  true,
		},
	}
}

// armed creates a tenant with the data that the attacks use.
func armed(s *nodetest.Service) *nodetest.Client {
	c := s.SignUp(nodetest.Address())
	value := strings.Repeat("v", 60_000)
	for i := range 200 {
		c.CreateFlag(fmt.Sprintf("large-%d", i), map[string]any{"type": "string", "defaultValue": value})
	}
	c.CreateFlag("storied", map[string]any{"type": "string", "defaultValue": value})
	for i := range 100 {
		c.Call("PATCH", nodetest.FlagPath("storied"), map[string]any{"defaultValue": fmt.Sprint(i, value)}).Want(200)
	}
	for i := range 50 {
		key := fmt.Sprintf("costly-%d", i)
		c.CreateEnabledFlag(key, nil)
		c.SetRules(key, costlyRules).Want(200)
	}
	for i := range 20 {
		c.CreateEnabledFlag(fmt.Sprintf("ruled-%d", i), nil)
	}
	return c
}

// armedWithPast creates a tenant with 20 flags of 350 KB and 300 small ones. All have changed since each of two times.
func armedWithPast(s *nodetest.Service) (c *nodetest.Client, times []string) {
	c = s.SignUp(nodetest.Address())
	rules := func(round int) string {
		var list []string
		for i := range 4 {
			values := make([]string, 900)
			for j := range values {
				values[j] = fmt.Sprintf("%q", fmt.Sprintf("%d %093d", round, i*len(values)+j))
			}
			list = append(list,
				`{"conditions":[{"attribute":"a","op":"in","values":[`+strings.Join(values, ",")+`]}],"serve":{"value":false}}`)
		}
		return `{"rules":[` + strings.Join(list, ",") + `]}`
	}
	for i := range 20 {
		c.CreateEnabledFlag(fmt.Sprintf("fat-%d", i), nil)
	}
	for i := range 300 {
		c.CreateFlag(fmt.Sprintf("small-%d", i), nil)
	}
	for round := range 3 {
		changed := rules(round)
		for i := range 20 {
			c.SetRules(fmt.Sprintf("fat-%d", i), changed).Want(200)
		}
		for i := range 300 {
			c.Call("PATCH", nodetest.FlagPath(fmt.Sprintf("small-%d", i)), map[string]any{"name": fmt.Sprint("Changed ", round)}).
				Want(200)
		}
		times = append(times, time.Now().UTC().Format(time.RFC3339Nano))
	}
	return c, times[:2]
}

// armedWithSpentDay creates a tenant with 20 flags that has written a free tenant's daily quota.
func armedWithSpentDay(s *nodetest.Service) *nodetest.Client {
	c := newSandbox(s.SignUp(nodetest.Address()))
	for i := range 20 {
		c.CreateFlag(fmt.Sprintf("flag-%d", i), map[string]any{"type": "string", "defaultValue": "v"})
	}
	for i := range 1000 {
		change := map[string]any{"defaultValue": fmt.Sprint(i, strings.Repeat("v", 60_000))}
		if c.Call("PATCH", nodetest.FlagPath("flag-0"), change).Status == http.StatusTooManyRequests {
			return c
		}
	}
	s.T.Fatal("a tenant writes without end")
	return nil
}

// graphWidth is the number of flags in a level of armedWithGraph.
const graphWidth = 16

// allOfLevel returns prerequisites that require all flags of a level.
func allOfLevel(level int) string {
	required := make([]string, graphWidth)
	for i := range required {
		required[i] = fmt.Sprintf(`{"flagKey":"%d-%d","serves":[{"value":true}]}`, level, i)
	}
	return strings.Join(required, ",")
}

// armedWithGraph creates a tenant with 96 flags in six levels. Each flag requires all flags of the next level, and
// uses segments that refer to one through 20 others.
func armedWithGraph(s *nodetest.Service) *nodetest.Client {
	c := s.SignUp(nodetest.Address())
	refer := func(keys []string) string {
		quoted := make([]string, len(keys))
		for i, key := range keys {
			quoted[i] = strconv.Quote(key)
		}
		return `{"op":"in_segment","negate":true,"values":[` + strings.Join(quoted, ",") + `]}`
	}
	createSegment(c, "leaf", ``)
	below := []string{"leaf"}
	for level := range 2 {
		var keys []string
		for i := range 20 {
			keys = append(keys, fmt.Sprintf("level-%d-%d", level, i))
			createSegment(c, keys[i], `{"conditions":[`+refer(below)+`]}`)
		}
		below = keys
	}
	c.CreateEnabledFlag("text", map[string]any{"type": "string"})
	for level := 5; level >= 0; level-- {
		for i := range graphWidth {
			key := fmt.Sprintf("%d-%d", level, i)
			c.CreateEnabledFlag(key, nil)
			c.SetRules(key, `{"rules":[{"conditions":[`+refer(below)+`],"serve":{"value":false}}]}`).Want(200)
			if level < 5 {
				required := `{"prerequisites":[` + allOfLevel(level+1) + `]}`
				c.Call("PUT", nodetest.FlagPath(key, "/prerequisites"), required).Want(200)
			}
		}
	}
	return c
}

// armedWithBrowserKey returns a browser key that sees ten flags of 60 KB. Its tenant has the requests of its plan.
func armedWithBrowserKey(s *nodetest.Service) *nodetest.Client {
	c := newSandbox(s.SignUp(nodetest.Address()))
	for i := range 10 {
		c.CreateFlag(fmt.Sprintf("seen-%d", i),
			map[string]any{"type": "string", "defaultValue": strings.Repeat("v", 60_000), "clientSide": true})
	}
	_, key := createKey(c, "browser", nil)
	return key
}

// run attacks until stop is called, which returns the count of each status.
func (a attack) run(b *testing.B, c *nodetest.Client, times []string) (stop func() string) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	before, after, keyed := strings.Cut(a.body, `KEY`)
	start, end := []byte(before), []byte(after) // shared by all calls: real attackers have their own machines
	if len(times) == 0 {
		times = []string{""}
	}
	for i := range a.clients {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				at := times[n%len(times)]
				path := strings.NewReplacer("-N", fmt.Sprint("-", i), "TIME", at, "TENANT", c.Tenant).Replace(a.path)
				start := start
				if a.past {
					start = []byte(strings.ReplaceAll(before, "TIME", at))
				}
				var key []byte
				if keyed {
					key = fmt.Appendf(nil, `made-%d-%d-%d`, time.Now().UnixNano(), i, n)
				}
				status, err := a.once(ctx, c, path, start, key, end)
				if ctx.Err() == nil {
					mu.Lock()
					answers[status]++
					mu.Unlock()
				}
				if err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	return func() string {
		cancel()
		all.Wait()
		return fmt.Sprint(answers)
	}
}

// once makes a call on its own connection, and waits if the response is not read.
func (a attack) once(ctx context.Context, c *nodetest.Client, path string, body ...[]byte) (status string, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(c.Service.URL, "http://"))
	if err != nil {
		return "no connection", err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	if !a.unread {
		_ = conn.(*net.TCPConn).SetReadBuffer(1 << 20)
	}
	size := 0
	for _, part := range body {
		size += len(part)
	}
	who := fmt.Sprintf("Authorization: Bearer %s\r\nX-Tenant-ID: %s", c.Token, c.Tenant)
	network := "X-Forwarded-For: 10." + fmt.Sprint(rand.IntN(256), ".", rand.IntN(256), ".1")
	switch {
	case a.crowd:
		who = network
	case a.stolen:
		who = "X-API-Key: " + c.Token + "\r\n" + network
	}
	header := fmt.Appendf(nil,
		"%s %s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		a.method, path, who, size)
	request := net.Buffers(append([][]byte{header}, body...))
	if _, err := request.WriteTo(conn); err != nil {
		return "request not taken", err
	}
	if a.unread {
		<-ctx.Done()
		return "", nil
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "no answer", err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return strconv.Itoa(answer.StatusCode) + " broken off", err
	}
	if answer.StatusCode >= 400 {
		err = fmt.Errorf("%d", answer.StatusCode)
	}
	return strconv.Itoa(answer.StatusCode), err
}

// bystander holds the durations of another tenant's calls.
type bystander struct {
	evaluations, changes, signIns, health nodetest.Samples
	failed                                atomic.Int64
}

// call makes calls of another tenant for a while.
func (y *bystander) call(c *nodetest.Client, d time.Duration) {
	end := time.Now().Add(d)
	var all sync.WaitGroup
	loop := func(into *nodetest.Samples, pause time.Duration, call func(n int) nodetest.Reply) {
		all.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				reply := call(n)
				if into.Add(reply.Took); reply.Status != http.StatusOK {
					y.failed.Add(1)
				}
				time.Sleep(pause)
			}
		})
	}
	loop(&y.evaluations, time.Millisecond, func(int) nodetest.Reply { return c.Attempt("POST", benchPath, benchBody) })
	loop(&y.changes, 5*time.Millisecond, func(n int) nodetest.Reply {
		return c.Attempt("POST", nodetest.FlagPath("toggled", []string{"/enable", "/disable"}[n%2]), "")
	})
	signIn := fmt.Sprintf(`{"email":%q,"password":%q}`, c.Email, nodetest.Password)
	loop(&y.signIns, 50*time.Millisecond, func(int) nodetest.Reply { return c.Attempt("POST", "/auth/signin", signIn) })
	loop(&y.health, 20*time.Millisecond, func(int) nodetest.Reply { return c.Attempt("GET", "/health", "") })
	all.Wait()
}

// BenchmarkAttacks compares another tenant's calls during an attack with quiet times. The p99 ratios of evaluations and
// of changes should be at most 3. No call and no sign-in from the person's own network may fail, /health takes at most
// 100 ms, and memory grows by at most 100 MB.
func BenchmarkAttacks(b *testing.B) {
	program := nodetest.Build(b)
	// or most changes are refused
	node := program.Serve("FLAGLEDGER_DATABASE_URL="+pgtest.URL(b), "FLAGLEDGER_LOG=json", "FLAGLEDGER_FLAG_MIB=free=64,sandbox=1",
		"FLAGLEDGER_TRUSTED_PROXIES=127.0.0.1")
	attacker, other := armed(program.Service()), program.Service().SignUp(nodetest.Address())
	historian, pastTimes := armedWithPast(program.Service())
	spender := armedWithSpentDay(program.Service())
	graph := armedWithGraph(program.Service())
	browser := armedWithBrowserKey(program.Service())
	benchFlag(other)
	other.CreateFlag("toggled", nil)
	(&bystander{}).call(other, time.Second)
	for _, a := range attacks() {
		b.Run(a.name, func(b *testing.B) {
			d := attackFor(b) / 2
			var quiet, beside bystander
			var answers []string
			before, most := memory(b, node.Process.Pid), 0
			attacker, times := attacker, []string(nil)
			switch {
			case a.past:
				attacker, times = historian, pastTimes
			case a.spent:
				attacker, times = spender, []string{"enable", "disable"}
			case a.graph:
				attacker = graph
			case a.stolen:
				attacker = browser
			}
			a.body = strings.ReplaceAll(a.body, "VICTIM", other.Email)
			for range 2 { // longer than -benchtime, so that it runs once
				quiet.call(other, d)
				stop := a.run(b, attacker, times)
				beside.call(other, d)
				most = max(most, memory(b, node.Process.Pid))
				answers = append(answers, stop())
			}
			ratio := func(quiet, beside *nodetest.Samples) float64 {
				return float64(beside.Percentile(99)) / float64(quiet.Percentile(99))
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(ms(quiet.evaluations.Percentile(99)), "evaluate-p99-ms-quiet")
			b.ReportMetric(ms(beside.evaluations.Percentile(99)), "evaluate-p99-ms-beside")
			b.ReportMetric(ratio(&quiet.evaluations, &beside.evaluations), "evaluate-p99-ratio")
			b.ReportMetric(ms(quiet.changes.Percentile(99)), "change-p99-ms-quiet")
			b.ReportMetric(ms(beside.changes.Percentile(99)), "change-p99-ms-beside")
			b.ReportMetric(ratio(&quiet.changes, &beside.changes), "change-p99-ratio")
			b.ReportMetric(ms(quiet.signIns.Percentile(99)), "sign-in-p99-ms-quiet")
			b.ReportMetric(ms(beside.signIns.Percentile(99)), "sign-in-p99-ms-beside")
			b.ReportMetric(ms(beside.health.Percentile(100)), "health-max-ms")
			b.ReportMetric(float64(quiet.failed.Load()+beside.failed.Load()), "failed")
			b.ReportMetric(float64(most-before)/(1<<20), "grown-MB")
			b.ReportMetric(0, "ns/op")
			b.Logf("%s: the attackers were answered %v", a.name, answers)
		})
	}
}

// memory returns the memory use of a process in bytes. It works only on Linux.
func memory(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}
