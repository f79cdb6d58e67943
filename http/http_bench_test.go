package http_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

const (
	benchRound = "2s"
	benchPath  = "/api/v1/flags/checkout/evaluate"
	benchBody  = `{"targetingKey":"user-42","attributes":{"plan":"pro","country":"DE","seats":12},"environment":"production"}`
)

// bareAnswer is the response of the bare server: three fields of an evaluation.
type bareAnswer struct {
	Enabled bool   `json:"enabled"`
	Value   bool   `json:"value"`
	Reason  string `json:"reason"`
}

// benchFlag creates the evaluated flag. benchBody matches its second rule.
func benchFlag(c *nodetest.Client) {
	c.Service.T.Helper()
	c.CreateEnabledFlag(
		"checkout",
		map[string]any{
			"flag_variations": []any{map[string]any{"name": "on", "value": true}, map[string]any{"name": "off", "value": false}},
		},
	)
	c.SetRules("checkout", fmt.Sprintf(`{"rules":[
		{"conditions":[{"attribute":"country","op":"in","values":["AT","CH"]}],"serve":{"value":false}},
		{"conditions":[{"attribute":"plan","op":"in","values":["pro","team"]},{"attribute":"seats","op":"gte","values":[10]}],"serve":{"variationId":%q}}]}`,
		c.Variations("checkout")[0]["id"])).Want(200)
}

// serveBare is the baseline: a chi handler that decodes the same body, looks the token up in a map and encodes three
// fields. The test binary runs it instead of tests if BENCH_BARE is set.
func serveBare(token string) {
	users := map[string]string{token: "user-1"}
	router := chi.NewRouter()
	router.Post("/api/v1/flags/{flagKey}/evaluate", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			TargetingKey string         `json:"targetingKey"`
			Attributes   map[string]any `json:"attributes"`
			Environment  string         `json:"environment"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if _, known := users[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]; !known {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(bareAnswer{true, true, "RULE_MATCH"})
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
		os.Exit(0)
	}()
	log.Fatal((&http.Server{Handler: router, ReadHeaderTimeout: time.Second}).Serve(listener))
}

// httpLoad is a request to a server and its cost in the server's process.
type httpLoad struct {
	name   string
	pid    int
	c      *nodetest.Client
	rounds []float64 // microseconds of CPU a request
}

// round loads the server with wrk over 32 connections.
func (l *httpLoad) round(b *testing.B) {
	b.Helper()
	wrk := exec.CommandContext(b.Context(), "wrk", "-t1", "-c32", "-d"+benchRound, "-s", "testdata/evaluate.lua",
		l.c.Service.URL+benchPath)
	wrk.Env = append(os.Environ(), "BENCH_TOKEN="+l.c.Token, "BENCH_TENANT="+l.c.Tenant, "BENCH_BODY="+benchBody)
	before := cpuTime(b, l.pid)
	printed, err := wrk.CombinedOutput()
	took := cpuTime(b, l.pid) - before
	var answers, failed int
	if _, tail, found := strings.Cut(string(printed), "answers"); found {
		_, err = fmt.Sscan(strings.Replace(tail, "errors", "", 1), &answers, &failed)
	}
	if err != nil || answers == 0 || failed > 0 {
		b.Fatalf("wrk: %v\n%s", err, printed)
	}
	l.rounds = append(l.rounds, float64(took.Microseconds())/float64(answers))
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

// cpuTime returns the user and kernel CPU time of a process. It works only on Linux.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100 // the value on all architectures of Go
}

// startBare starts the bare server with the token of a client, and returns a client of it.
func startBare(b *testing.B, like *nodetest.Client) (pid int, there *nodetest.Client) {
	b.Helper()
	bare := exec.CommandContext(b.Context(), os.Args[0])
	bare.Env = append(os.Environ(), "BENCH_BARE="+like.Token)
	bare.Stderr = os.Stderr
	if _, err := bare.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	printed, err := bare.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := bare.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = bare.Process.Kill()
		_ = bare.Wait()
	})
	address, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	c := *like
	c.Service = &nodetest.Service{T: b, URL: "http://" + strings.TrimSpace(address)}
	return bare.Process.Pid, &c
}

// BenchmarkEvaluateHTTP measures the CPU time of an evaluation over HTTP in the server's process, with authentication,
// rate limit, metrics and metering, at the service and at an edge, beside a bare handler. wrk loads them in turn, two
// seconds each per iteration.
func BenchmarkEvaluateHTTP(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("the CPU time of a process is read from /proc")
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		b.Skip("wrk is not installed (Debian: apt-get install wrk; Homebrew: brew install wrk)")
	}
	i := nodetest.Build(b)
	node := i.Serve("FLAGLEDGER_DATABASE_URL="+pgtest.URL(b), "FLAGLEDGER_RATE_LIMITS=free=1000000000")
	user := i.Service().SignUp("me@example.com")
	benchFlag(user)
	machine := user.Machine("flags:evaluate")
	_, key := createKey(user, "server", map[string]any{"edge": true})
	beside := i.In(b)
	edge := beside.Edge(i.Service().URL, key.Token)
	atEdge := *key
	atEdge.Service = beside.Service()
	barePID, bare := startBare(b, user)
	full := user.Call("POST", benchPath, benchBody).Want(200).Object()
	for name, value := range bare.Call("POST", benchPath, benchBody).Want(200).Object() {
		if full[name] != value {
			b.Fatalf("the bare server answers that %s is %v, the service %v", name, value, full[name])
		}
	}

	loads := []*httpLoad{
		{name: "bare", pid: barePID, c: bare},
		{name: "user", pid: node.Process.Pid, c: user},
		{name: "machine", pid: node.Process.Pid, c: machine},
		{name: "key", pid: node.Process.Pid, c: key},
		{name: "edge", pid: edge.Process.Pid, c: &atEdge},
	}
	for _, l := range loads {
		l.round(b) // warms up
		l.rounds = nil
	}
	b.ResetTimer()
	for b.Loop() {
		for _, l := range loads {
			l.round(b)
		}
	}
	for _, l := range loads {
		b.ReportMetric(median(l.rounds), l.name+"-µs/req")
		b.Logf("%s: %.1f µs of CPU a request", l.name, l.rounds)
	}
	for _, l := range loads[1:] {
		ratios := make([]float64, len(l.rounds))
		for i := range ratios {
			ratios[i] = l.rounds[i] / loads[0].rounds[i]
		}
		b.ReportMetric(median(ratios), l.name+"-ratio")
	}
}

// answerSink receives a benchmark's responses.
type answerSink struct {
	header http.Header
	status int
	body   []byte
}

func (s *answerSink) Header() http.Header    { return s.header }
func (s *answerSink) WriteHeader(status int) { s.status = status }
func (s *answerSink) Write(p []byte) (int, error) {
	s.body = append(s.body, p...)
	return len(p), nil
}

// BenchmarkEvaluateHandler measures the service's part of an evaluation without net/http: middleware, authentication,
// limits, metrics, metering.
func BenchmarkEvaluateHandler(b *testing.B) {
	user := nodetest.New(b).SignUp("me@example.com")
	benchFlag(user)
	_, key := createKey(user, "server", nil)
	for name, c := range map[string]*nodetest.Client{
		"user": user, "machine": user.Machine("flags:evaluate"), "key": key,
	} {
		b.Run(name, func(b *testing.B) {
			body := strings.NewReader(benchBody)
			r := httptest.NewRequest(http.MethodPost, benchPath, io.NopCloser(body))
			r.Header = http.Header{
				"Authorization": {"Bearer " + c.Token},
				"X-Tenant-Id":   {c.Tenant},
				"Content-Type":  {"application/json"},
			}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(benchBody)
				w := &answerSink{header: http.Header{}}
				c.Service.Node.API.ServeHTTP(w, r)
				if w.status >= 400 {
					b.Fatalf("%d: %s", w.status, w.body)
				}
			}
		})
	}
}
