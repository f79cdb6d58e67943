package systemtest

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/embedded"
)

func TestKillingTheServerUnderLoad(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	running := i.Serve()
	if len(i.Processes()) < 2 {
		t.Fatalf("the processes of a running Postgres are not found: %v", i.Processes())
	}
	s := i.Service()
	c := s.SignUp("me@example.com")
	l := startLoad(c, 6)
	var starts []time.Duration
	for range killCount(2) {
		l.more(50)
		before := nodetest.Postmaster(i.Dir)
		running.Kill()
		running = i.Serve()
		starts = append(starts, running.Took)
		if after := nodetest.Postmaster(i.Dir); after == 0 || after == before {
			t.Errorf("the postmaster was %d and is %d", before, after)
		}
	}
	l.more(50)
	running.Kill()
	if runtime.GOOS == "linux" { // elsewhere the kernel has no such signal, and the next start does it
		i.Alone("a kill")
	}
	running = i.Serve()
	l.more(50)
	l.stop()
	t.Logf("healthy again %v after the start", starts)

	url, err := embedded.Connect(t.Context(), i.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s.DatabaseURL = url
	settled(s)
	l.audit()
	before := readModels(t, url)
	if output, err := i.Command(nil, "projections", "rebuild", "--all").CombinedOutput(); err != nil {
		t.Fatalf("projections rebuild --all: %v\n%s", err, output)
	}
	sameReadModels(t, before, readModels(t, url))
	if code := running.End(syscall.SIGTERM); code != 0 {
		t.Errorf("the last server ended with code %d", code)
	}
	i.Alone("an orderly end")
}
