package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
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
	answers := answersOfSegments(me)
	forgotten := privateSegment(me, "forgotten")
	privateSegment(me, "remembered")
	flag, history := me.Call("GET", nodetest.FlagPath("new-checkout"), nil).
		Want(200).
		Object(),
		me.History("new-checkout", "")
	run(before, []string{from}, "export-facts", "--out="+file).succeeded()
	mine := filepath.Join(before.Dir, "mine.ndjson")
	run(before, []string{from}, "export-facts", "--tenant="+me.Tenant, "--out="+mine).succeeded()
	if text, err := os.ReadFile(mine); err != nil || !strings.Contains(string(text), events.SegmentStream(me.Tenant, "beta")) {
		t.Errorf("an export of the tenant has no facts of segments (%v)", err)
	}
	run(before, []string{from}, "import-facts", "--in="+file).refused(file, "stop it first")
	if code := server.End(syscall.SIGTERM); code != 0 {
		t.Fatalf("the server ended with code %d", code)
	}

	run(after, []string{to}, "migrate").succeeded()
	copyKeepings(t, from[len("FLAGLEDGER_DATABASE_URL="):], to[len("FLAGLEDGER_DATABASE_URL="):], forgotten)
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
	answers.compare(t, restored)
	served := func(key string) any {
		return restored.Evaluate("of-"+key, `{"targetingKey":"ada"}`).Want(200).Object()["value"]
	}
	nodetest.Same(t, "to a member of a private segment", served("remembered"), true)
	nodetest.Same(t, "to a member of one without its salt, which no export has", served("forgotten"), false)
	restored.Call("POST", "/api/v1/segments/forgotten/forget", nil).Want(200)
	restored.Call("POST", "/api/v1/segments/forgotten/members", `{"list":"included","add":["ada"]}`).Want(200)
	nodetest.Same(t, "once the member is added again", served("forgotten"), true)
	run(after, []string{to}, "verify", "--tenant="+me.Tenant).succeeded()
	run(after, []string{to}, "projections", "rebuild", "--all", "--full-speed").succeeded()
	answers.compare(t, restored)
}

// segmentAnswers are answers of the flag that answersOfSegments creates, by what it was asked; the last one is current.
type segmentAnswers struct {
	unit         string
	answers      []string
	members, who string
}

const segmentOfAnswers = "/api/v1/segments/beta"

// answersOfSegments asks a flag for people in a segment, while the segment changes.
func answersOfSegments(me *nodetest.Client) *segmentAnswers {
	me.Call("POST", "/api/v1/segments", `{"key":"staff","rules":[{"conditions":[{"attribute":"plan","op":"in","values":["pro"]}]}]}`).
		Want(201)
	me.Call("POST", "/api/v1/segments", `{"key":"beta","rules":[{"conditions":[{"op":"in_segment","values":["staff"]}]}]}`).Want(201)
	me.CreateEnabledFlag("audience", nil)
	me.SetFallthrough("audience", `{"serve":{"value":false}}`).Want(200)
	me.SetRules("audience", `{"rules":[{"conditions":[{"op":"in_segment","values":["beta"]}],"serve":{"value":true}}]}`).Want(200)
	a := &segmentAnswers{unit: `{"targetingKey":"ada","attributes":{"plan":"pro"}}`}
	note := func() { a.answers = append(a.answers, string(me.Evaluate("audience", a.unit).Want(200).Body)) }
	note()
	me.Call("POST", segmentOfAnswers+"/members", `{"list":"excluded","add":["ada"]}`).Want(200)
	note()
	me.Call("POST", segmentOfAnswers+"/members", `{"list":"excluded","remove":["ada"]}`).Want(200)
	me.Call("POST", segmentOfAnswers+"/members", `{"list":"included","add":["bob","zoe"]}`).Want(200)
	me.Call("PUT", "/api/v1/segments/staff/rules", `{"rules":[]}`).Want(200)
	note()
	me.Call("POST", segmentOfAnswers+"/members", `{"list":"included","add":["ada"],"remove":["zoe"]}`).Want(200)
	note()
	a.members, a.who = a.shown(me)
	return a
}

// shown returns the members of the segment, and its history.
func (a *segmentAnswers) shown(me *nodetest.Client) (members, history string) {
	return string(me.Call("GET", segmentOfAnswers+"/members", nil).Want(200).Body),
		string(me.Call("GET", segmentOfAnswers+"/history", nil).Want(200).Body)
}

// compare checks that the answers can be had again, and that the last is still given.
func (a *segmentAnswers) compare(t *testing.T, me *nodetest.Client) {
	t.Helper()
	for _, then := range a.answers {
		var answer struct{ Revision string }
		if err := json.Unmarshal([]byte(then), &answer); err != nil {
			t.Fatal(err)
		}
		again := nodetest.FlagPath("audience", "/evaluate?revision="+url.QueryEscape(answer.Revision))
		nodetest.Same(t, "the answer of "+answer.Revision, string(me.Call("POST", again, a.unit).Want(200).Body), then)
	}
	nodetest.Same(t, "the answer", string(me.Evaluate("audience", a.unit).Want(200).Body), a.answers[len(a.answers)-1])
	members, history := a.shown(me)
	nodetest.Same(t, "the members and the history", []string{members, history}, []string{a.members, a.who})
}

// privateSegment creates a private segment with ada in it and a flag that is true for its members. It returns the
// segment's id.
func privateSegment(me *nodetest.Client, key string) (id string) {
	id = me.Call("POST", "/api/v1/segments", `{"key":"`+key+`","private":true}`).Want(201).Object()["id"].(string)
	me.Call("POST", "/api/v1/segments/"+key+"/members", `{"list":"included","add":["ada"]}`).Want(200)
	me.CreateEnabledFlag("of-"+key, nil)
	me.SetFallthrough("of-"+key, `{"serve":{"value":false}}`).Want(200)
	me.SetRules("of-"+key,
		`{"rules":[{"conditions":[{"op":"in_segment","values":["`+key+`"]}],"serve":{"value":true}}]}`).Want(200)
	return id
}

// copyKeepings copies the rows of the keepings, as pg_dump --data-only and psql do, but for the salt of a segment.
func copyKeepings(t *testing.T, fromURL, toURL, unsalted string) {
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
	if _, err := to.Exec(t.Context(), `delete from keep.segment_salts where segment_id = $1`, unsalted); err != nil {
		t.Fatal(err)
	}
}
