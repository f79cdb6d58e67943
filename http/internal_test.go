package http_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
)

// A fault of the service is told as such: where to find it, and nothing of what it is.
func TestAFaultOfTheService(t *testing.T) {
	t.Parallel()
	book := &nodetest.LogBook{}
	s := nodetest.WithLog(t, nodetest.Database(t), book.Logger())
	me := s.SignUp("me@example.com")
	db, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	if _, err := db.Exec(t.Context(), `alter table read.projects rename column color to hue`); err != nil {
		t.Fatal(err)
	}
	a := me.Call("GET", "/api/v1/projects", nil).Refused(500)
	id := a.Header.Get("X-Request-ID")
	a.Shows(map[string]any{
		"type": s.URL + "/problems/internal", "title": "Internal Server Error", "status": 500,
		"detail": "the request could not be carried out; its id finds the reason in the log", "instance": "urn:uuid:" + id,
	})
	nodetest.Members(t, "the problem", a.Object(), "type", "title", "status", "detail", "instance")
	budget(a)
	if bytes.Contains(a.Body, []byte("color")) || bytes.Contains(a.Body, []byte("SQL")) {
		t.Errorf("it tells of the inside: %s", a.Body)
	}
	s.Anonymous().Call("GET", "/problems/internal", nil).Want(200)
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
	nodetest.Same(t, "entries with the reason", reasons, 1)
}
