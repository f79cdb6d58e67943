package http_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// A response about the last moments waits for concurrent changes, so that it is the same later.
func TestChangesUnderWayBelongToThePast(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	me := s.SignUp(nodetest.Address())
	me.CreateFlag("k", nil)
	project := me.Call("POST", "/api/v1/projects", map[string]any{"name": "P"}).Want(201).Object()["id"].(string)
	db, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	looking, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = looking.Close(t.Context()) }()

	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		stream   string
		revision int
		fact     events.Fact
	}{
		{events.FlagStream(me.Tenant, "k"), 1, events.FlagUpdated{
			Name: &events.Change[string]{To: "new"}, DefaultValue: &events.Change[json.RawMessage]{From: json.RawMessage("false"), To: json.RawMessage("true")},
		}},
		{events.ProjectStream(project), 1, events.ProjectUpdated{Name: &events.Change[string]{From: "P", To: "new"}}},
	} {
		stored, err := events.Encode(events.Event{
			ID: uuid.New(),
			Metadata: events.Metadata{
				Time:  time.Now().UTC().Truncate(time.Millisecond),
				Actor: events.Actor{Kind: events.UserActor, ID: me.UserID},
			},
			Fact: e.fact,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(
			t.Context(),
			"select events.append($1, $2, '{1}', $3, $4, $5, $6, $7)",
			[]string{e.stream},
			[]int{e.revision},
			[]string{
				stored.ID.String(),
			},
			[]string{stored.Name},
			[]int{stored.Version},
			[][]byte{stored.Data},
			[][]byte{stored.Metadata},
		); err != nil {
			t.Fatal(err)
		}
	}
	at := atNow()
	requests := []request{
		{path: nodetest.FlagPath("k")},
		{path: "/api/v1/flags"},
		{path: "/api/v1/projects"},
		{path: nodetest.FlagPath("k", "/evaluate"), context: `{"targetingKey":"u"}`},
		{path: "/api/v1/flags/evaluate", context: `{"targetingKey":"u"}`},
		{path: nodetest.FlagPath("k", "/diff?from=1&to="+at[len("at="):])},
	}
	asked := func(r request) answered {
		if strings.Contains(r.path, "/diff") {
			return ask(me, r, "")
		}
		return ask(me, r, at)
	}
	answers := make([]answered, len(requests))
	var asking sync.WaitGroup
	for i, r := range requests {
		asking.Go(func() { answers[i] = asked(r) })
	}
	done := make(chan struct{})
	go func() { asking.Wait(); close(done) }()
	for waiting := false; !waiting; {
		if err := looking.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database()))`).
			Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
			waiting = true
		case <-time.After(time.Millisecond):
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	for i, r := range requests {
		if later := asked(r); later != answers[i] || later.status != 200 {
			t.Errorf("%s was %v while an earlier change was under way, and is %v later", r.path, answers[i], later)
		}
	}
}

// The store's clock decides whether a time is past: each time that it recorded works on every node.
func TestPastIsByTheStoresClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		ahead time.Duration // of the node's clock
		at    time.Duration // after the flag was recorded
		want  int
	}{
		{"a node whose clock is behind", -30 * time.Second, 0, 200},
		{"a node whose clock is ahead", time.Hour, time.Minute, 422},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := nodetest.Start(t, nodetest.Database(t),
				settings.Config{Environment: "development", Now: func() time.Time { return time.Now().Add(c.ahead) }}, nodetest.Log(t))
			me := s.SignUp(nodetest.Address())
			me.CreateFlag("k", nil)
			shown := me.Call("GET", nodetest.FlagPath("k", "/versions"), nil).Want(200).List()[0]["timestamp"].(string)
			recorded, err := time.Parse(time.RFC3339Nano, shown)
			if err != nil {
				t.Fatal(err)
			}
			at := url.QueryEscape(recorded.Add(c.at).Format(time.RFC3339Nano))
			for field, path := range map[string][]string{
				"at": {nodetest.FlagPath("k", "?at="+at), "/api/v1/flags?at=" + at, "/api/v1/projects?at=" + at, fmt.Sprintf("/api/v1/tenants/%s/users?at=%s", me.Tenant, at)},
				"to": {nodetest.FlagPath("k", "/diff?from=1&to="+at)},
			} {
				for _, path := range path {
					if a := me.Call("GET", path, nil); c.want == 422 {
						a.Refused(422, field)
					} else {
						a.Want(c.want)
					}
				}
			}
			for _, path := range []string{nodetest.FlagPath("k", "/evaluate?at="+at), "/api/v1/flags/evaluate?at=" + at} {
				if a := me.Call("POST", path, `{"targetingKey":"u"}`); c.want == 422 {
					a.Refused(422, "at")
				} else {
					a.Want(c.want)
				}
			}
			for _, path := range []string{nodetest.FlagPath("k", "/revert"), "/api/v1/flags/revert"} {
				if a := me.Call("POST", path, map[string]any{"at": recorded.Add(c.at)}); c.want == 422 {
					a.Refused(422, "at")
				} else {
					a.Want(c.want)
				}
			}
		})
	}
}
