package systemtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
)

func TestAReadModelThatLagsIsWaitedForTwoSeconds(t *testing.T) {
	nodetest.BothEngines(t, testAReadModelThatLagsIsWaitedForTwoSeconds)
}

func testAReadModelThatLagsIsWaitedForTwoSeconds(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	db, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	lock, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `lock table read.flags in exclusive mode`); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	a := me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Want(201)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("it has taken %s", took)
	}
	nodetest.Same(t, "Preference-Applied", a.Header.Get("Preference-Applied"), "respond-async")
	a.Shows(map[string]any{"key": "k"})
	me.Evaluate("k", `{}`).Want(200)
	me.Call("GET", nodetest.FlagPath("k"), nil).Refused(404)
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the flag is shown", func() bool { return me.Call("GET", nodetest.FlagPath("k"), nil).Status == 200 })
	nodetest.Same(t, "Preference-Applied",
		me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`).Want(200).Header.Get("Preference-Applied"), "")
}
