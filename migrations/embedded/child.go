package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	logLimit = 10 << 20 // bytes at which postgres.log starts over
	fastStop = 6 * time.Second
	hardStop = 3 * time.Second
)

// child is one run of the postmaster.
type child struct {
	pid    int
	proc   *os.Process
	exited chan struct{} // closed once it is dead and reaped
	ending string        // how it ended; set before exited is closed
}

// spawn starts a command on a thread that lives as long as the command: the
// kernel sends the signal on the parent's death when the thread that forked
// ends, not only when the process does.
func spawn(cmd *exec.Cmd) (*child, error) {
	c := &child{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		c.pid, c.proc = cmd.Process.Pid, cmd.Process
		started <- nil
		_ = cmd.Wait()
		c.ending = cmd.ProcessState.String()
		close(c.exited)
	}()
	return c, <-started
}

// shutdown ends the postmaster: fast, then immediate, then killed. The error
// says that it was not fast.
func (c *child) shutdown() error {
	for _, step := range []struct {
		sig     syscall.Signal
		timeout time.Duration
	}{{syscall.SIGINT, fastStop}, {syscall.SIGQUIT, hardStop}} {
		_ = c.proc.Signal(step.sig)
		select {
		case <-c.exited:
			if step.sig != syscall.SIGINT {
				return errors.New(
					"the private Postgres was slow to shut down and had to be stopped hard; it recovers at the next start",
				)
			}
			return nil
		case <-time.After(step.timeout):
		}
	}
	_ = c.proc.Kill()
	select {
	case <-c.exited:
		return errors.New("the private Postgres did not shut down and was killed; it recovers at the next start")
	case <-time.After(time.Second):
		return fmt.Errorf("the private Postgres (process %d) cannot be stopped", c.pid)
	}
}

// startError is a start that failed.
type startError struct {
	output string // what this run wrote to the log
	log    string
}

func (e *startError) Error() string {
	line := lastLine(e.output)
	if line == "" {
		line = "it left no message"
	}
	return fmt.Sprintf("the private Postgres does not start: %s (more in %s)", line, e.log)
}

// leftover says that parts of an earlier run are still there.
func (e *startError) leftover() bool {
	return strings.Contains(e.output, "pre-existing shared memory block") ||
		strings.Contains(e.output, `lock file "postmaster.pid"`)
}

func (e *startError) portTaken() bool { return strings.Contains(e.output, "could not bind") }

// launch runs the postmaster once and returns when it accepts connections.
func (p *Postgres) launch(ctx context.Context) (*child, error) {
	log, err := os.OpenFile(p.logFile(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", p.logFile(), cause(err))
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err == nil {
		err = p.runAs.own(p.logFile())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", p.logFile(), cause(err))
	}

	args := []string{"-D", p.cluster, "-p", strconv.Itoa(p.port)}
	for _, s := range slices.Concat(settings, p.settings) {
		args = append(args, "-c", s)
	}
	cmd := p.runAs.command(context.Background(), p.bin.dir+"/postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	// When this process is killed, SIGINT makes the postmaster do a fast
	// shutdown, so that the next start has nothing to clean up or recover. No
	// commit depends on it: with fsync on, each is on disk already.
	cmd.SysProcAttr = p.runAs.attributes(syscall.SIGINT)
	c, err := spawn(cmd)
	if err != nil {
		return nil, fmt.Errorf("cannot run Postgres: %w", err)
	}
	for {
		if p.accepting(c.pid) {
			return c, nil
		}
		select {
		case <-c.exited:
			output, _ := io.ReadAll(io.NewSectionReader(log, info.Size(), 1<<20))
			return nil, &startError{string(output), p.logFile()}
		case <-ctx.Done():
			_ = c.shutdown()
			return nil, fmt.Errorf("starting Postgres: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// accepting reports whether the postmaster takes connections, as its own file
// says. It does not while it recovers.
func (p *Postgres) accepting(pid int) bool {
	lines := readPidFile(p.cluster)
	return len(lines) >= 8 && lines[0] == strconv.Itoa(pid) && lines[7] == "ready"
}

// readPidFile gives the lines of postmaster.pid: process id, folder, start
// time, port, sockets, address, shared memory, state.
func readPidFile(cluster string) []string {
	text, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
	if err != nil {
		return nil
	}
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

func (p *Postgres) logFile() string { return filepath.Join(p.dir, "postgres.log") }

// rotateLog keeps at most one old log, of about logLimit bytes.
func rotateLog(dir string) error {
	path := filepath.Join(dir, "postgres.log")
	info, err := os.Stat(path)
	if err != nil || info.Size() < logLimit {
		return nil //nolint:nilerr // no log yet
	}
	if err := os.Rename(path, path+".1"); err != nil {
		return fmt.Errorf("cannot rotate %s: %w", path, cause(err))
	}
	return nil
}

var severity = regexp.MustCompile(`(?m)^.*?\b(?:FATAL|PANIC|error): +(.*)$`)

// lastLine is the last line that says what went wrong, without its prefix.
func lastLine(output string) string {
	if all := severity.FindAllStringSubmatch(output, -1); all != nil {
		return all[len(all)-1][1]
	}
	output = strings.TrimSpace(output)
	return output[strings.LastIndexByte(output, '\n')+1:]
}
