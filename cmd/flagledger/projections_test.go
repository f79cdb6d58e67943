package main

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// A rebuild beside a server can be interrupted or killed, and resumes. A rebuild that finds wrong rows reports them.
func TestRebuildsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	me := nodetest.New(t).SignUp(nodetest.Address())
	s := me.Service
	me.CreateFlag("busy", nil)
	me.SwitchOften("busy", 1200)
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	p, settings := nodetest.Build(t), []string{"FLAGLEDGER_DATABASE_URL=" + s.DatabaseURL}
	reached := func() (commit int64) {
		// there is none at first
		_ = pool.QueryRow(t.Context(), `select commit from read_next.checkpoints where projection = 'flags'`).Scan(&commit)
		return commit
	}
	for _, how := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		var told bytes.Buffer
		before, rebuilding := reached(), p.Command(settings, "projections", "rebuild", "flags", "--rate=300")
		rebuilding.Stderr = &told
		if err := rebuilding.Start(); err != nil {
			t.Fatal(err)
		}
		s.Eventually("some of it is done", func() bool { return reached() > before })
		if err := rebuilding.Process.Signal(how); err != nil {
			t.Fatal(err)
		}
		_ = rebuilding.Wait()
		if how == syscall.SIGINT &&
			!strings.HasSuffix(
				told.String(),
				"flagledger: interrupted; a rebuild of the same read models goes on from here, or anew with --afresh\n",
			) {
			t.Errorf("a rebuild that is interrupted says\n%s", told.String())
		}
	}
	if r := run(p, settings, "projections", "rebuild", "flags").succeeded(); !strings.Contains(r.stderr, "continuing an interrupted rebuild") {
		t.Errorf("after one that was killed a rebuild says\n%s", r.stderr)
	}
	run(p, settings, "projections", "verify", "--all").succeeded()

	if _, err := pool.Exec(t.Context(), `update read.flags set name = 'x'`); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"verify", "rebuild"} {
		r := run(p, settings, "projections", command, "flags", "projects")
		if r.code != 1 || !strings.Contains(r.stderr, "flags lacks 1 rows and has 1 that are wrong") ||
			strings.Contains(r.stderr, "--force") != (command == "rebuild") {
			t.Errorf("%s ends with %d:\n%s", command, r.code, r.stderr)
		}
		nodetest.Same(t, "the name", me.Call("GET", "/api/v1/flags", nil).Want(200).List()[0]["name"], "x")
	}
	run(p, settings, "projections", "rebuild", "flags", "--force").succeeded()
	nodetest.Same(t, "the name", me.Call("GET", "/api/v1/flags", nil).Want(200).List()[0]["name"], "busy")
	run(p, settings, "projections", "verify", "flags").succeeded()
}

// A parked stream is listed and shown, and followed again after its cause is fixed.
func TestParkedStreamsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	me := nodetest.New(t).SignUp(nodetest.Address())
	s := me.Service
	me.CreateFlag("k", nil)
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`alter table read.flags add constraint out_of_order check (status = 'active')`)
	me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"status": "archived"}).Want(200)
	me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"name": "later"}).Want(200)
	p, settings := nodetest.Build(t), []string{"FLAGLEDGER_DATABASE_URL=" + s.DatabaseURL}
	stream := events.FlagStream(me.Tenant, "k")
	s.Eventually("the stream is parked", func() bool {
		var parked bool
		return pool.QueryRow(t.Context(), `select exists (select from keep.parked)`).Scan(&parked) == nil && parked
	})
	prints := func(text string, arguments ...string) {
		t.Helper()
		if r := run(
			p,
			settings,
			append([]string{"projections", "parked"}, arguments...)...).succeeded(); !strings.Contains(r.stdout, text) {
			t.Errorf("%v prints\n%s", arguments, r.stdout)
		}
	}
	prints(stream+"  2 ", "list")
	prints("flags has parked "+stream+" at version 2 since ", "show", "flags", stream)
	prints(`{"version":2,"fact":"flag.status_changed","shape":1,"id":"`, "show", "flags", stream)
	for _, arguments := range [][]string{{"show", "tenants", stream}, {"retry", "tenants", stream}} {
		if r := run(
			p,
			settings,
			append([]string{"projections", "parked"}, arguments...)...); r.code != 1 ||
			!strings.Contains(r.stderr, "the stream is not parked") {
			t.Errorf("%v ends with %d:\n%s", arguments, r.code, r.stderr)
		}
	}
	if r := run(
		p, settings, "projections", "parked", "retry", "flags",
	); r.code != 1 || !strings.Contains(r.stderr, "out_of_order") ||
		!strings.Contains(r.stderr, stream) {
		t.Errorf("a retry in vain ends with %d:\n%s", r.code, r.stderr)
	}
	exec(`alter table read.flags drop constraint out_of_order`)
	prints("flags follows "+stream+" again", "retry", "flags")
	me.Call("GET", nodetest.FlagPath("k"), nil).
		Want(200).
		Shows(map[string]any{"status": "archived", "name": "later", "version": 3})
	me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"name": "latest"}).Want(200)
	s.Eventually("the change is shown", func() bool {
		return me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Object()["name"] == "latest"
	})
	run(p, settings, "projections", "verify", "flags").succeeded()
}
