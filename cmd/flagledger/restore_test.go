package main

import (
	"bytes"
	"io"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

// Facts, keepings and FLAGLEDGER_SECRET restore the whole service, as docs/operate/backup.md says.
func TestAServiceIsRestored(t *testing.T) {
	t.Parallel()
	before := nodetest.Build(t)
	after := before.In(t)
	after.Addr = before.Addr // the issuer of tokens
	from, to := "FLAGLEDGER_DATABASE_URL="+pgtest.URL(t), "FLAGLEDGER_DATABASE_URL="+pgtest.URL(t)
	file := filepath.Join(before.Dir, "facts.ndjson")
	server := before.Serve(from)
	me := before.Service().SignUp(nodetest.Address())
	me.CreateEnabledFlag("new-checkout", map[string]any{"type": "boolean"})
	flag, history := me.Call("GET", nodetest.FlagPath("new-checkout"), nil).
		Want(200).
		Object(),
		me.History("new-checkout", "")
	run(before, []string{from}, "export-facts", "--out="+file).succeeded()
	run(before, []string{from}, "import-facts", "--in="+file).refused(file, "stop it first")
	if code := server.End(syscall.SIGTERM); code != 0 {
		t.Fatalf("the server ended with code %d", code)
	}

	run(after, []string{to}, "migrate").succeeded()
	copyKeepings(t, from[len("FLAGLEDGER_DATABASE_URL="):], to[len("FLAGLEDGER_DATABASE_URL="):])
	run(after, []string{to}, "import-facts", "--in="+file).succeeded()
	after.Serve(to)
	restored := &nodetest.Client{Service: after.Service(), Token: me.Token, Tenant: me.Tenant}
	for _, path := range []string{"/api/v1/tenants", nodetest.FlagPath("new-checkout"), nodetest.FlagPath("new-checkout") + "/history"} {
		after.Service().
			Eventually("the read model of "+path+" is built", func() bool { return restored.Attempt("GET", path, "").Status == 200 })
	}
	var session struct{ Token string }
	after.Service().
		Anonymous().
		Call("POST", "/auth/signin", map[string]string{"email": me.Email, "password": nodetest.Password}).
		Want(200).
		Decode(&session)
	for what, token := range map[string]string{"of before": me.Token, "that is new": session.Token} {
		restored := restored.WithToken(token)
		if value := restored.Evaluate("new-checkout", map[string]string{"targetingKey": "u"}).Want(200).Object()["value"]; value != true {
			t.Errorf("with a token %s, the flag serves %v", what, value)
		}
		now := restored.Call("GET", nodetest.FlagPath("new-checkout"), nil).Want(200).Object()
		for _, used := range []string{"lastEvaluatedAt", "lifecycle"} { // it was evaluated since
			delete(flag, used)
			delete(now, used)
		}
		if diff := cmp.Diff(flag, now); diff != "" {
			t.Errorf("with a token %s, the flag differs:\n%s", what, diff)
		}
		if diff := cmp.Diff(history, restored.History("new-checkout", "")); diff != "" {
			t.Errorf("with a token %s, the history differs:\n%s", what, diff)
		}
	}
}

// copyKeepings copies the rows of the keepings, as pg_dump --data-only and psql do.
func copyKeepings(t *testing.T, fromURL, toURL string) {
	t.Helper()
	connect := func(url string) *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	from, to := connect(fromURL), connect(toURL)
	defer func() { _, _ = from.Close(t.Context()), to.Close(t.Context()) }()
	// it refers to other tables
	rows, err := from.Query(t.Context(),
		`select quote_ident(tablename) from pg_tables where schemaname = 'keep' order by tablename = 'pushes'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, table := range tables {
		var data bytes.Buffer
		if _, err := from.PgConn().CopyTo(t.Context(), &data, "copy keep."+table+" to stdout"); err != nil {
			t.Fatal(err)
		}
		if _, err := to.PgConn().CopyFrom(t.Context(), io.Reader(&data), "copy keep."+table+" from stdin"); err != nil {
			t.Fatal(err)
		}
	}
}
