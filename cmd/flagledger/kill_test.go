package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"flagledger/migrations/embedded"
)

// installation is a built binary with its settings and a data folder of its own.
type installation struct {
	t      testing.TB
	binary string
	dir    string
	addr   string
}

// install builds the binary as this test is built: with the race detector, if that is on.
func install(t testing.TB) *installation {
	t.Helper()
	i := &installation{t: t, binary: filepath.Join(t.TempDir(), "flagledger"), dir: dataFolder(t), addr: freeAddress(t)}
	arguments := []string{"build", "-o", i.binary}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		arguments = append(arguments, "-race")
	}
	if output, err := exec.Command("go", append(arguments, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return i
}

// in is the same binary with a data folder and an address of its own.
func (i *installation) in(t testing.TB) *installation {
	return &installation{t: t, binary: i.binary, dir: dataFolder(t), addr: freeAddress(t)}
}

// freeAddress is on a port that the system gives to no outgoing connection: a caller that knocks at a server which is down could take it.
func freeAddress(t testing.TB) string {
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

// command prepares a run of the binary. settings are of the form NAME=value and come before those of the installation.
func (i *installation) command(settings []string, arguments ...string) *exec.Cmd {
	c := exec.Command(i.binary, arguments...)
	c.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "FLAGLEDGER_") }),
		"FLAGLEDGER_DATA="+i.dir, "FLAGLEDGER_ADDR="+i.addr, "FLAGLEDGER_RATE_LIMITS=free=1000000,anonymous=1000000,auth=1000000", "GORACE=atexit_sleep_ms=0") // the race detector waits a second before each end otherwise
	c.Env = append(c.Env, settings...) // of two of one name, the last one counts
	return c
}

// service is what the installation serves when it does.
func (i *installation) service() *service { return &service{t: i.t, url: "http://" + i.addr} }

// server is a process that serves.
type server struct {
	*exec.Cmd
	i      *installation
	took   time.Duration // until it was healthy
	output *output
	exited chan struct{}
}

// output is what a process prints.
type output struct {
	mu sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.String()
}

// serve starts a server and waits until it is healthy. One that still runs when the test ends is killed.
func (i *installation) serve(settings ...string) *server {
	i.t.Helper()
	s := &server{Cmd: i.command(settings), i: i, output: &output{}, exited: make(chan struct{})}
	s.Stdout, s.Stderr = s.output, s.output
	began := time.Now()
	if err := s.Start(); err != nil {
		i.t.Fatal(err)
	}
	go func() {
		_ = s.Wait()
		close(s.exited)
	}()
	i.t.Cleanup(func() {
		s.kill()
		if i.t.Failed() {
			i.t.Logf("process %d printed:\n%s", s.Process.Pid, tail(s.output.String(), 40))
		}
	})
	i.service().eventually("a server is healthy", func() bool {
		select {
		case <-s.exited:
			i.t.Fatalf("the server ended: %v", s.ProcessState)
		default:
		}
		return i.service().anonymous().attempt("GET", "/health", "").status == 200
	})
	s.took = time.Since(began)
	return s
}

func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// kill ends the process without a word, and waits until it is gone.
func (s *server) kill() {
	_ = s.Process.Kill()
	<-s.exited
}

// end asks the process to end, and gives the code that it ends with.
func (s *server) end(how syscall.Signal) (code int) {
	s.i.t.Helper()
	if err := s.Process.Signal(how); err != nil {
		s.i.t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		s.i.t.Fatalf("the server goes on after %v", how)
	}
	return s.ProcessState.ExitCode()
}

// processes are those that run Postgres on the data folder.
func (i *installation) processes() (pids []int) {
	i.t.Helper()
	list, err := exec.Command("ps", "-A", "-o", "pid=,command=").Output()
	if err != nil {
		i.t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if pid, err := strconv.Atoi(strings.Fields(line)[0]); err == nil && (strings.Contains(line, i.dir) || worksIn(pid, i.dir)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// worksIn tells of a process that does not show its folder in its command, as those that Postgres forks. It knows on Linux alone.
func worksIn(pid int, dir string) bool {
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return err == nil && strings.HasPrefix(cwd, dir)
}

// alone checks that no process is left, once those that are told to end have.
func (i *installation) alone(after string) {
	i.t.Helper()
	i.service().eventually("no process is left after "+after, func() bool { return len(i.processes()) == 0 })
}

func TestKillingTheServerUnderLoad(t *testing.T) {
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("FLAGLEDGER_KILLS")); err == nil {
		kills = n
	}
	i := install(t)
	running := i.serve()
	if len(i.processes()) < 2 {
		t.Fatalf("the processes of a running Postgres are not found: %v", i.processes())
	}
	s := i.service()
	c := s.signUp("me@example.com")
	l := c.startLoad(6)
	var starts []time.Duration
	for range kills {
		l.more(50)
		before := postmaster(i.dir)
		running.kill()
		running = i.serve()
		starts = append(starts, running.took)
		if after := postmaster(i.dir); after == 0 || after == before {
			t.Errorf("the postmaster was %d and is %d", before, after)
		}
	}
	l.more(50)
	running.kill()
	if runtime.GOOS == "linux" { // elsewhere the kernel has no signal for it, and the next start does it
		i.alone("a kill")
	}
	running = i.serve()
	l.more(50)
	l.stop()
	t.Logf("healthy again %v after the start", starts)
	slices.Sort(starts)
	if typical := starts[len(starts)/2]; typical > 2*time.Second {
		t.Errorf("starting again typically takes %v", typical)
	}

	url, err := embedded.Connect(t.Context(), i.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.databaseURL = url
	s.settled()
	l.audit()
	before := readModels(t, url)
	if output, err := i.command(nil, "projections", "rebuild", "--all").CombinedOutput(); err != nil {
		t.Fatalf("projections rebuild --all: %v\n%s", err, output)
	}
	sameReadModels(t, before, readModels(t, url))
	if code := running.end(syscall.SIGTERM); code != 0 {
		t.Errorf("the last server ended with code %d", code)
	}
	i.alone("an orderly end")
}
