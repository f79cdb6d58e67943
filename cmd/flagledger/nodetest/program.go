package nodetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program is a compiled binary with its own data folder and address.
type Program struct {
	T      testing.TB
	Binary string
	Dir    string
	Addr   string
}

// built holds the binary of Build.
var built struct {
	sync.Once
	binary string
	err    error
}

// Build builds the program, with the race detector if the test has it. It does so once in a process, whose TestMain
// must call Main.
func Build(t testing.TB) *Program {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs the program, and -short is set")
	}
	built.Do(func() { built.binary, built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return (&Program{Binary: built.binary}).In(t)
}

func build() (binary string, err error) {
	dir, err := os.MkdirTemp("", "flagledger-binary-")
	if err != nil {
		return "", err
	}
	atEnd.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary = filepath.Join(dir, "flagledger")
	arguments := []string{"build", "-ldflags=-s -w", "-o", binary}
	if info, ok := debug.ReadBuildInfo(); ok &&
		slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		arguments = append(arguments, "-race")
	}
	if output, err := exec.Command("go", append(arguments, "flagledger/cmd/flagledger")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, output)
	}
	return binary, nil
}

// In returns the same binary with its own data folder and address.
func (p *Program) In(t testing.TB) *Program {
	return &Program{T: t, Binary: p.Binary, Dir: DataFolder(t), Addr: FreeAddress(t)}
}

// FreeAddress returns a loopback address outside the port range of outgoing connections. A client that retries a
// stopped server could otherwise occupy its port.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(10_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("found no free port")
	return ""
}

// Command prepares a run of the binary. settings have the form NAME=value and come before the program's own.
func (p *Program) Command(settings []string, arguments ...string) *exec.Cmd {
	c := exec.Command(p.Binary, arguments...)
	// Settings of the person who runs the tests must not reach the server: it would use their account at Stripe or Google.
	// A Firebase test in the same process sets the emulator's address.
	foreign := func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.ContainsFunc([]string{"FLAGLEDGER_", "FIREBASE_", "GOOGLE_", "STRIPE_"},
			func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
			strings.HasSuffix(strings.ToUpper(name), "_PROXY")
	}
	c.Env = append(
		slices.DeleteFunc(os.Environ(), foreign),
		// otherwise the race detector waits a second at each exit
		"FLAGLEDGER_DATA="+p.Dir,
		"FLAGLEDGER_ADDR="+p.Addr,
		"FLAGLEDGER_SECRET="+Secret,
		"FLAGLEDGER_RATE_LIMITS=free=1000000,anonymous=1000000,auth=1000000,browser=1000000",
		"GORACE=atexit_sleep_ms=0",
	)
	c.Env = append(c.Env, settings...) // the last setting of a name counts
	return c
}

// Service returns the service of a server process.
func (p *Program) Service() *Service { return &Service{T: p.T, URL: "http://" + p.Addr} }

// Process is a server process.
type Process struct {
	*exec.Cmd
	Program *Program
	Took    time.Duration // until it was healthy
	Output  *Output
	Exited  chan struct{}
}

// Output collects the output of a process.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns all output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Serve starts a server and waits until it is healthy. The end of the test kills it.
func (p *Program) Serve(settings ...string) *Process {
	p.T.Helper()
	return p.start(settings)
}

// Edge starts an edge of a service and waits until it is healthy. The end of the test kills it.
func (p *Program) Edge(from, key string) *Process {
	p.T.Helper()
	return p.start([]string{"FLAGLEDGER_EDGE_FROM=" + from, "FLAGLEDGER_EDGE_KEYS=" + key}, "edge")
}

func (p *Program) start(settings []string, arguments ...string) *Process {
	p.T.Helper()
	s := &Process{Cmd: p.Command(settings, arguments...), Program: p, Output: &Output{}, Exited: make(chan struct{})}
	s.Stdout, s.Stderr = s.Output, s.Output
	began := time.Now()
	if err := s.Start(); err != nil {
		p.T.Fatal(err)
	}
	go func() {
		_ = s.Wait()
		close(s.Exited)
	}()
	p.T.Cleanup(func() {
		s.Kill()
		if p.T.Failed() {
			p.T.Logf("process %d printed:\n%s", s.Process.Pid, tail(s.Output.String(), 40))
		}
	})
	p.Service().Eventually("the server is healthy", func() bool {
		select {
		case <-s.Exited:
			p.T.Fatalf("the server ended: %v", s.ProcessState)
		default:
		}
		return p.Service().Anonymous().Attempt("GET", "/health", "").Status == 200
	})
	s.Took = time.Since(began)
	return s
}

func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// Kill kills the process and waits until it is gone.
func (s *Process) Kill() {
	_ = s.Process.Kill()
	<-s.Exited
}

// End signals the process and returns its exit code.
func (s *Process) End(how syscall.Signal) (code int) {
	s.Program.T.Helper()
	if err := s.Process.Signal(how); err != nil {
		s.Program.T.Fatal(err)
	}
	select {
	case <-s.Exited:
	case <-time.After(2 * time.Minute):
		s.Program.T.Fatalf("the server still runs after %v", how)
	}
	return s.ProcessState.ExitCode()
}

// Processes lists the processes that run Postgres on the data folder.
func (p *Program) Processes() (pids []int) {
	p.T.Helper()
	for pid, command := range processes(p.T) {
		if strings.Contains(command, p.Dir) || runsIn(pid, p.Dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// runsIn recognizes a process without its folder in its command, such as a child of Postgres. It works only on Linux.
func runsIn(pid int, dir string) bool {
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return err == nil && strings.HasPrefix(cwd, dir)
}

// Alone waits until no process uses the data folder.
func (p *Program) Alone(after string) {
	p.T.Helper()
	p.Service().Eventually("no process remains after "+after, func() bool { return len(p.Processes()) == 0 })
}
