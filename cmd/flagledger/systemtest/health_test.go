package systemtest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func TestHealthNamesAReadModelThatFails(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	c := s.SignUp("me@example.com")
	db := connect(t, s.DatabaseURL)
	if _, err := db.Exec(t.Context(), `
		create function fail() returns trigger language plpgsql as $$ begin raise exception 'it fails'; end $$;
		create trigger fails before update on read.checkpoints for each row when (new.projection = 'flags') execute function fail()`); err != nil {
		t.Fatal(err)
	}
	c.Call("POST", "/api/v1/flags", `{"key":"late","type":"boolean"}`)
	health := func() string { return string(s.Anonymous().Call("GET", "/health", nil).Want(200).Body) }
	s.Eventually("health names it",
		func() bool { return strings.Contains(health(), "the read model flags cannot be updated") })
	if strings.Contains(health(), "the read model projects") {
		t.Errorf("it names another: %s", health())
	}
	if _, err := db.Exec(t.Context(), `drop trigger fails on read.checkpoints`); err != nil {
		t.Fatal(err)
	}
	s.Eventually("health is good", func() bool { return strings.Contains(health(), `"status":"ok"`) })
}

// A fact from the future moves the times of all later ones, because Postgres records no event before an earlier one.
func TestHealthReportsLogAheadOfTime(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	at := time.Now().UTC().Add(time.Hour).Truncate(time.Microsecond)
	copied := events.Stored{Name: "user.registered", Version: 1, Data: []byte(`{"id":"u"}`), At: at, AcceptUntil: at}
	_, err := s.Store().Append(t.Context(), events.UserStream("u"), 0, []events.Event{{ID: uuid.New(), Fact: copied}})
	if err != nil {
		t.Fatal(err)
	}
	s.Eventually("health says that the log is ahead", func() bool {
		return strings.Contains(string(s.Anonymous().Call("GET", "/health", nil).Body), "later than the event store's clock")
	})
}
