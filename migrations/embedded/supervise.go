package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"flagledger/retry"
)

const (
	leftoverPatience = 10 * time.Second
	// provenLife is how long a server must have lived for the next one to be started after the shortest wait.
	provenLife = time.Second
)

// startOnFreePort starts the server on the port it had last time, or on another
// if that is taken.
func (p *Postgres) startOnFreePort(ctx context.Context) (*child, error) {
	p.port = p.lock.port
	var err error
	for range 5 {
		if p.port == 0 || !isFree(p.port) {
			if p.port, err = freePort(); err != nil {
				return nil, err
			}
		}
		var c *child
		if c, err = p.bringUp(ctx); err == nil {
			return c, nil
		}
		var se *startError
		if !errors.As(err, &se) || !se.portTaken() {
			return nil, err
		}
		p.port = 0 // taken meanwhile
	}
	return nil, err
}

// freePort picks a random port below those that the system gives to outgoing
// connections (from 32768 on Linux, 49152 on macOS). One of those could be taken
// while the server restarts, even by a client that tries to connect to it.
func freePort() (int, error) {
	for range 100 {
		if port := 20000 + rand.IntN(12000); isFree(port) {
			return port, nil
		}
	}
	return 0, errors.New("found no free port for Postgres between 20000 and 32000")
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// bringUp starts the server once nothing of an earlier one is in the way.
func (p *Postgres) bringUp(ctx context.Context) (*child, error) {
	deadline := time.Now().Add(leftoverPatience)
	delays := retry.NewBackoff()
	for {
		if err := p.endOrphan(ctx); err != nil {
			return nil, err
		}
		c, err := p.launch(ctx)
		if err == nil {
			p.setChild(c)
			return c, nil
		}
		var se *startError
		if !errors.As(err, &se) || !se.leftover() || time.Now().After(deadline) {
			return nil, err
		}
		if err := retry.Sleep(ctx, delays.NextBackOff()); err != nil {
			return nil, err
		}
	}
}

// endOrphan stops the postmaster that a killed process left on this cluster; on Linux it has mostly ended by itself.
// This process holds the folder's lock, so it cannot be another process's server.
func (p *Postgres) endOrphan(ctx context.Context) error {
	lines := readPidFile(p.cluster)
	if len(lines) == 0 {
		return nil
	}
	pid, err := strconv.Atoi(lines[0])
	if err != nil || pid <= 1 {
		return nil //nolint:nilerr // no process is named
	}
	if !p.isPostmaster(pid) {
		if syscall.Kill(pid, 0) == nil {
			// The id now belongs to another program, or to a zombie. With this
			// file, Postgres would never start.
			_ = os.Remove(filepath.Join(p.cluster, "postmaster.pid"))
		}
		return nil
	}
	p.log.Info("waiting for the Postgres of a killed process to end", "pid", pid)
	for _, step := range []struct {
		sig     syscall.Signal
		timeout time.Duration
	}{{syscall.SIGINT, fastStop}, {syscall.SIGQUIT, hardStop}, {syscall.SIGKILL, time.Second}} {
		_ = syscall.Kill(pid, step.sig)
		for deadline := time.Now().Add(step.timeout); time.Now().Before(deadline); {
			if !p.isPostmaster(pid) {
				return nil
			}
			if err := retry.Sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("process %d, a Postgres left behind on data folder %s, cannot be stopped", pid, p.dir)
}

// isPostmaster says whether a process is a living postmaster of this cluster.
func (p *Postgres) isPostmaster(pid int) bool {
	args := commandLine(pid) + " "
	return strings.Contains(args, "postgres -D "+p.cluster+" ")
}

// supervise restarts the server on the same port whenever it dies, until Stop.
func (p *Postgres) supervise(life context.Context, c *child) {
	defer close(p.done)
	defer p.lock.release()
	defer p.setChild(nil)
	delays := retry.NewBackoff()
	for {
		born := time.Now()
		select {
		case <-life.Done():
			p.stopErr = c.shutdown()
			return
		case <-c.exited:
		}
		p.setChild(nil)
		p.log.Error("Postgres died; starting it again", "pid", c.pid, "ending", c.ending)
		died := time.Now()
		if died.Sub(born) >= provenLife {
			delays.Reset()
		}
		for c = nil; c == nil; {
			if retry.Sleep(life, delays.NextBackOff()) != nil {
				return
			}
			var err error
			if c, err = p.bringUp(life); err != nil && life.Err() == nil {
				p.log.Error("Postgres is not back yet; it is started again", "err", err)
			}
		}
		p.log.Info("Postgres is back", "pid", c.pid, "took", time.Since(died).Round(time.Millisecond))
	}
}

func (p *Postgres) setChild(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cur = c
}
