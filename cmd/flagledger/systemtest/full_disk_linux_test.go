package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
	"flagledger/migrations/embedded"
	"flagledger/migrations/pgtest"
)

// smallDisk creates a data folder on its own disk.
func smallDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = nodetest.DataFolder(t)
	// it needs the rights of root
	tooltest.Skip(t, "small-disk", syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755,size="+size))
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill fills a disk. free frees the space.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for size := 1 << 20; size >= 1; size /= 2 {
		for {
			if _, err := file.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A full disk stops only changes. With space again, everything works without a restart, even if Postgres has crashed.
func TestADiskThatFillsUpAndIsFreed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it needs a Postgres, and -short is set")
	}
	dir := smallDisk(t, "256m")
	p, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: nodetest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := nodetest.Start(t, p.URL(), settings.Config{Environment: "development", Data: dir}, nodetest.Log(t))
	c := s.SignUp("me@example.com")
	c.CreateFlag("on", nil)
	c.Call("POST", nodetest.FlagPath("on", "/enable"), nil).Want(200)
	evaluates := func() {
		t.Helper()
		if r := c.Attempt("POST", nodetest.FlagPath("on", "/evaluate"), `{"targetingKey":"u"}`); r.Status != 200 ||
			!strings.Contains(r.Body, `"value":true`) {
			t.Errorf("an evaluation: %v", r)
		}
	}

	free := fill(t, dir)
	freed := false
	defer func() {
		if !freed {
			free()
		}
	}()
	value, made, named := strings.Repeat("x", 60_000), 0, false
	s.Eventually("changes are refused", func() bool {
		made++
		r := c.Attempt("POST", "/api/v1/flags", fmt.Sprintf(`{"key":"f-%d","type":"string","defaultValue":%q}`, made, value))
		if r.Status != 201 && r.Status != 503 {
			t.Fatalf("a change: %v", r)
		}
		named = named || strings.Contains(r.Body, "the disk of the event store is full") ||
			strings.Contains(r.Body, "the disk of the database is full")
		return r.Status == 503
	})
	t.Logf("%d flags fitted", made-1)
	evaluates()
	s.Eventually("health names the disk", func() bool {
		r := c.Attempt("GET", "/health", "")
		if r.Status != 200 {
			t.Fatalf("health: %v", r)
		}
		return strings.Contains(r.Body, "disk of the database is full") &&
			strings.Contains(r.Body, "the disk of FLAGLEDGER_DATA has 0 MiB left")
	})
	if !named {
		t.Error("no refusal names the disk")
	}
	evaluates()

	// A crashed Postgres cannot start before there is space.
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.Eventually("health names the database", func() bool {
		return strings.Contains(c.Attempt("GET", "/health", "").Body, "the database cannot be reached")
	})
	evaluates()

	free()
	freed = true
	s.Eventually("changes are made", func() bool {
		r := c.Attempt("POST", "/api/v1/flags", `{"key":"back","type":"boolean"}`)
		return r.Status == 201 || r.Status == 409
	})
	s.Eventually("they are listed", func() bool {
		r := c.Attempt("GET", nodetest.FlagPath("back"), "")
		return r.Status == 200
	})
	s.Eventually("health is good",
		func() bool { return strings.Contains(c.Attempt("GET", "/health", "").Body, `"status":"ok"`) })
	c.Call("POST", nodetest.FlagPath("back", "/evaluate"), `{}`).Want(200)
	evaluates()
}

// An edge whose disk is full evaluates, follows changes and reports its usage. With space again it copies what it holds.
func TestAnEdgeWhoseDiskIsFull(t *testing.T) {
	t.Parallel()
	folder := smallDisk(t, "1m")
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	key := serverKey(me, "production")
	me.CreateEnabledFlag("f1", nil)
	e := startEdge(t, s.URL, folder, false, key)
	follows := func(value bool) {
		t.Helper()
		me.Call("PATCH", nodetest.FlagPath("f1"), map[string]any{"defaultValue": value}).Want(200)
		s.Eventually("the edge has the change", func() bool { return answers(e.Client, key) == answers(me, key) })
	}
	follows(true)
	free := fill(t, folder)
	follows(false)
	e.WithToken(key).Call("POST", nodetest.FlagPath("f1", "/evaluate"), `{}`).Want(200)
	s.Eventually("it is reported", func() bool {
		return me.Call("GET", nodetest.FlagPath("f1", "/metrics"), nil).Want(200).Object()["reported"].(float64) > 0
	})
	e.stop()
	e = startEdge(t, s.URL, folder, false, key)
	follows(true)
	free()
	follows(false)
	e.stop()
	current := answers(me, key)
	e = startEdge(t, "http://"+nodetest.FreeAddress(t), folder, false, key)
	nodetest.Same(t, "answers from disk", answers(e.Client, key), current)
}
