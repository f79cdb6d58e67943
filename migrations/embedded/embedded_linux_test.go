package embedded

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// The parent-death signal must not come when the thread that called Start ends.
func TestTheThreadThatStartedItEnds(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	var p *Postgres
	var err error
	tid := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with this function
		p, err = Start(t.Context(), Options{Dir: dir})
		tid <- syscall.Gettid()
	}()
	thread := <-tid
	must(t, err)
	defer func() { _ = p.Stop() }()
	if thread != os.Getpid() { // the main thread is parked instead
		within(t, "the thread is gone", func() bool {
			_, err := os.Stat("/proc/self/task/" + strconv.Itoa(thread))
			return err != nil
		})
	}
	pid := p.PID()
	query(t, p.URL(), "SHOW port")
	if pid == 0 || p.PID() != pid {
		t.Error("the postmaster died with the thread")
	}
}
