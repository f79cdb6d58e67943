package main

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/jobs"
	"flagledger/migrations/pgtest"
)

func TestCommandLineOfJobs(t *testing.T) {
	pool := pgtest.Pool(t)
	client, err := jobs.Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	job := jobs.PlatformInvitation{EventID: "e\u009b2J", InvitationID: "i"}
	if err := pgx.BeginFunc(
		t.Context(), pool, func(tx pgx.Tx) error { return client.Add(context.Background(), tx, job) },
	); err != nil {
		t.Fatal(err)
	}
	list, err := client.List(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Fatalf("listed %v: %v", list, err)
	}
	id := strconv.FormatInt(list[0].ID, 10)
	p, settings := nodetest.Build(t), []string{"FLAGLEDGER_DATABASE_URL=" + pool.Config().ConnString()}
	shows := func(lines int, arguments ...string) {
		t.Helper()
		r := run(p, settings, append([]string{"jobs", "list"}, arguments...)...)
		if r.code != 0 || strings.Count(r.stdout, "\n") != lines+1 ||
			lines > 0 && !strings.Contains(r.stdout, "mail.platform_invitation") ||
			strings.ContainsRune(r.stdout, '\u009b') {
			t.Errorf("%v: code %d\n%s%s", arguments, r.code, r.stdout, r.stderr)
		}
	}
	does := func(what string) {
		t.Helper()
		if r := run(p, settings, "jobs", what, id); r.code != 0 {
			t.Errorf("%s: code %d\n%s", what, r.code, r.stderr)
		}
	}
	shows(1)
	shows(1, "--state", "available")
	does("cancel")
	shows(0, "--state", "available")
	shows(1, "--state", "cancelled")
	does("retry")
	shows(1, "--state", "available")
	run(p, settings, "jobs", "retry", "4711").refused("there is no job 4711")
	run(p, settings, "jobs", "cancel", "4711").refused("there is no job 4711")
	run(p, settings, "jobs", "cancel", "all").refused("id")
	run(p, settings, "jobs", "list", "--state", "lost").refused("--state", "discarded")
}
