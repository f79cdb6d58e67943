package http_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// An internal error returns its request id, but no detail.
func TestAFaultOfTheService(t *testing.T) {
	t.Parallel()
	book := &nodetest.LogBook{}
	s := nodetest.WithLog(t, nodetest.Database(t), book.Logger())
	me := s.SignUp("me@example.com")
	sql(s, `alter table read.projects alter column id type uuid using id::uuid`)
	a := me.Call("GET", "/api/v1/projects", nil).Refused(500)
	id := a.Header.Get("X-Request-ID")
	a.Shows(map[string]any{
		"type": s.URL + "/problems/internal", "title": "Internal Server Error", "status": 500,
		"detail": "the request failed; search the log for its id", "instance": "urn:uuid:" + id,
	})
	nodetest.Members(t, "the problem", a.Object(), "type", "title", "status", "detail", "instance")
	budget(a)
	if bytes.Contains(a.Body, []byte("operator")) || bytes.Contains(a.Body, []byte("SQL")) {
		t.Errorf("it tells of the inside: %s", a.Body)
	}
	s.Anonymous().Call("GET", "/problems/internal", nil).Want(200)
	reasons := 0
	for line := range strings.Lines(book.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if reason, _ := entry["err"].(string); entry["request"] == id && entry["level"] == "ERROR" &&
			strings.Contains(reason, "operator does not exist") {
			reasons++
		}
	}
	nodetest.Same(t, "entries with the reason", reasons, 1)
}

// After an update, a read model keeps its old shape until it is rebuilt.
func TestAReadModelOfAFormerVersionCannotBeReadYet(t *testing.T) {
	t.Parallel()
	s := nodetest.On(t, nodetest.Database(t))
	me := s.SignUp("me@example.com")
	sql(s, `alter table read.projects rename column project to fields`)
	me.Call("GET", "/api/v1/projects", nil).Refused(503)
	sql(s, `alter table read.projects rename column fields to project`)
	me.Call("GET", "/api/v1/projects", nil).Want(200)
}
