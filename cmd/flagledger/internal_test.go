package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/migrations/pgtest"
)

// A fault of the service is told as such: where to find it, and nothing of what it is.
func TestAFaultOfTheService(t *testing.T) {
	t.Parallel()
	book := &logBook{}
	s := serviceLogging(t, pgtest.URL(t), book.logger())
	me := s.signUp("me@example.com")
	db, err := pgx.Connect(t.Context(), s.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	if _, err := db.Exec(t.Context(), `alter table read.projects rename column color to hue`); err != nil {
		t.Fatal(err)
	}
	a := me.call("GET", "/api/v1/projects", nil).refused(500)
	id := a.header.Get("X-Request-ID")
	a.shows(map[string]any{
		"type": s.url + "/problems/internal", "title": "Internal Server Error", "status": 500,
		"detail": "the request could not be carried out; its id finds the reason in the log", "instance": "urn:uuid:" + id,
	})
	members(t, "the problem", a.object(), "type", "title", "status", "detail", "instance")
	a.budget()
	if bytes.Contains(a.body, []byte("color")) || bytes.Contains(a.body, []byte("SQL")) {
		t.Errorf("it tells of the inside: %s", a.body)
	}
	s.anonymous().call("GET", "/problems/internal", nil).want(200)
	reasons := 0
	for line := range strings.Lines(book.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if reason, _ := entry["err"].(string); entry["request"] == id && entry["level"] == "ERROR" && strings.Contains(reason, "color") {
			reasons++
		}
	}
	same(t, "entries with the reason", reasons, 1)
}
