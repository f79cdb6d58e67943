package http_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
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

// attackFor is how long each attack goes on, by turns with as long a quiet time. FLAGLEDGER_ATTACK=30s has it longer.
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

// attack is what many clients of one tenant do at once.
type attack struct {
	name    string
	clients int
	method  string
	path    string
	body    string
	unread  bool // the clients do not read their answers
}

const costlyRules = `{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["(?:a?){400}b"]}],"serve":{"value":false}}]}`

// attacks are what was found to hurt others. They need what armed makes.
func attacks() []attack {
	longText := strings.Repeat("a", 4000)
	values := make([]string, 900)
	for i := range values {
		values[i] = fmt.Sprintf("%q", fmt.Sprintf("%095d", i))
	}
	rule := `{"conditions":[{"attribute":"a","op":"in","values":[` + strings.Join(values, ",") + `]}],"serve":{"value":false}}`
	manyValues := `{"rules":[` + strings.Join([]string{rule, rule, rule}, ",") + `]}`
	return []attack{
		{"20-evaluations-unread", 20, "POST", manyPath, `{}`, true},
		{"20-ofrep-unread", 20, "POST", ofrepPath, `{"context":{}}`, true},
		{"15-lists-unread", 15, "GET", "/api/v1/flags", "", true},
		{"15-lists", 15, "GET", "/api/v1/flags", "", false},
		{"history-unread", 1, "GET", nodetest.FlagPath("storied", "/history"), "", true},
		{"5-histories", 5, "GET", nodetest.FlagPath("storied", "/history"), "", false},
		{"20-rules-of-270KB", 20, "PUT", nodetest.FlagPath("ruled-N", "/rules"), manyValues, false},
		{"60-creations-of-1MB", 60, "POST", "/api/v1/flags", `{"key":"KEY","type":"string","defaultValue":"` + strings.Repeat("v", 1_000_000) + `"}`, false},
		{"60-creations-of-60KB", 60, "POST", "/api/v1/flags", `{"key":"KEY","type":"string","defaultValue":"` + strings.Repeat("v", 60_000) + `"}`, false},
		{"40-costly-evaluations", 40, "POST", manyPath, `{"attributes":{"a":"` + longText + `"}}`, false},
		{"40-costly-single", 40, "POST", nodetest.FlagPath("costly-0", "/evaluate"), `{"attributes":{"a":"` + longText + `"}}`, false},
	}
}

// armed is a tenant that has what the attacks use.
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

// run attacks until stop is called, which tells how often which status was answered.
func (a attack) run(b *testing.B, c *nodetest.Client) (stop func() string) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	before, after, keyed := strings.Cut(a.body, `"KEY"`)
	start, end := []byte(before), []byte(after) // copied for no call: attackers have machines of their own
	for i := range a.clients {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				path := strings.Replace(a.path, "-N/", fmt.Sprintf("-%d/", i), 1)
				var key []byte
				if keyed {
					key = fmt.Appendf(nil, `"made-%d-%d-%d"`, time.Now().UnixNano(), i, n)
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

// once makes a call on a connection of its own, and waits at its answer where that is not read.
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
	header := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Tenant-ID: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		a.method, path, c.Token, c.Tenant, size)
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

// bystander is how long another tenant's calls take.
type bystander struct {
	evaluations, changes, health nodetest.Samples
	failed                       atomic.Int64
}

// call makes calls of another tenant for a time.
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
	loop(&y.health, 20*time.Millisecond, func(int) nodetest.Reply { return c.Attempt("GET", "/health", "") })
	all.Wait()
}

// BenchmarkAttacks measures another tenant's calls while one tenant attacks, beside those of quiet times. The ratios of the p99 of evaluations and of
// changes are to be at most 3, none may fail, /health takes 100 ms at most and memory grows by 100 MB at most.
func BenchmarkAttacks(b *testing.B) {
	program := nodetest.Build(b)
	node := program.Serve("FLAGLEDGER_DATABASE_URL="+pgtest.URL(b), "FLAGLEDGER_LOG=json", "FLAGLEDGER_FLAG_MIB=free=64") // or most changes are refused
	attacker, other := armed(program.Service()), program.Service().SignUp(nodetest.Address())
	benchFlag(other)
	other.CreateFlag("toggled", nil)
	(&bystander{}).call(other, time.Second)
	for _, a := range attacks() {
		b.Run(a.name, func(b *testing.B) {
			d := attackFor(b) / 2
			var quiet, beside bystander
			var answers []string
			before, most := memory(b, node.Process.Pid), 0
			for range 2 { // longer than -benchtime asks for, so that it is run once
				quiet.call(other, d)
				stop := a.run(b, attacker)
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
			b.ReportMetric(ms(beside.health.Percentile(100)), "health-max-ms")
			b.ReportMetric(float64(quiet.failed.Load()+beside.failed.Load()), "failed")
			b.ReportMetric(float64(most-before)/(1<<20), "grown-MB")
			b.ReportMetric(0, "ns/op")
			b.Logf("%s: the attackers were answered %v", a.name, answers)
		})
	}
}

// memory is what a process has of memory, in bytes. It is known on Linux alone.
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
