package embedded

import (
	"syscall"
	"testing"
)

// A child process of another goroutine holds the lock's open file until it runs its program.
func TestALockIsReleasedThoughAChildHasItsFileOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := lockFolder(t.Context(), dir)
	must(t, err)
	child, err := syscall.Dup(int(lock.f.Fd()))
	must(t, err)
	defer func() { _ = syscall.Close(child) }()
	lock.release()
	s, err := readLock(dir)
	must(t, err)
	if s.held {
		t.Error("the lock is held still")
	}
}
