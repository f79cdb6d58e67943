package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"flagledger/retry"
)

// folderLock is the flock on dir/lock that makes one process the owner of a data folder until it ends; no child
// inherits it. The file says who holds it and on which port the server listens.
type folderLock struct {
	f    *os.File
	port int // of the last server on this folder; 0 if unknown
}

// lockState is what dir/lock says.
type lockState struct {
	held  bool
	pid   int
	port  int
	ready bool // the server accepts connections
}

func lockFolder(ctx context.Context, dir string) (*folderLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot lock data folder %s: %w", dir, cause(err))
	}
	// Connect holds the lock for a moment to see whether it is free, and so does a
	// child between fork and exec. Only a refusal that lasts counts.
	for deadline := time.Now().Add(300 * time.Millisecond); ; {
		err = flock(f, syscall.LOCK_EX)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			break
		}
		if err := retry.Sleep(ctx, 10*time.Millisecond); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	s := parseLock(f)
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is held by process %d", ErrInUse, dir, s.pid)
		}
		return nil, fmt.Errorf("cannot lock data folder %s: %w", dir, err)
	}
	l := &folderLock{f: f, port: s.port}
	if err := l.write(s.port, false); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// write updates the file for other processes. It writes the text at once and
// truncates afterwards, so that a reader never parses half of it.
func (l *folderLock) write(port int, ready bool) error {
	word := "starting"
	if ready {
		word = "ready"
	}
	text := fmt.Sprintf("%d\n%d\n%s\n", os.Getpid(), port, word)
	_, err := l.f.WriteAt([]byte(text), 0)
	if err == nil {
		err = l.f.Truncate(int64(len(text)))
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", l.f.Name(), cause(err))
	}
	return nil
}

// release unlocks before it closes: a child between fork and exec may have the file open still.
func (l *folderLock) release() {
	_ = syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN)
	_ = l.f.Close()
}

func readLock(dir string) (lockState, error) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, os.ErrNotExist) {
		return lockState{}, nil
	}
	if err != nil {
		return lockState{}, fmt.Errorf("cannot look into data folder %s: %w", dir, cause(err))
	}
	defer func() { _ = f.Close() }()
	s := parseLock(f)
	switch err := flock(f, syscall.LOCK_SH); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		s.held = true
	case err != nil:
		return lockState{}, fmt.Errorf("cannot look into data folder %s: %w", dir, err)
	}
	return s, nil
}

func parseLock(f *os.File) (s lockState) {
	text := make([]byte, 64)
	n, _ := f.ReadAt(text, 0)
	var word string
	_, _ = fmt.Sscan(strings.TrimSpace(string(text[:n])), &s.pid, &s.port, &word)
	s.ready = word == "ready"
	return s
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}
