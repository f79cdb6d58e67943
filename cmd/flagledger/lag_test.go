package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestAReadModelThatLagsIsWaitedForTwoSeconds(t *testing.T) {
	t.Parallel()
	s := newService(t)
	me := s.signUp("me@example.com")
	db, err := pgx.Connect(t.Context(), s.databaseURL)
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
	a := me.call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).want(201)
	if took := time.Since(began); took < 2*time.Second || took > 10*time.Second {
		t.Errorf("it has taken %s", took)
	}
	same(t, "Preference-Applied", a.header.Get("Preference-Applied"), "respond-async")
	a.shows(map[string]any{"key": "k"})
	me.evaluate("k", `{}`).want(200)
	me.call("GET", flagPath("k"), nil).refused(404)
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.eventually("the flag is shown", func() bool { return me.call("GET", flagPath("k"), nil).status == 200 })
	same(t, "Preference-Applied", me.call("PATCH", flagPath("k"), `{"name":"n"}`).want(200).header.Get("Preference-Applied"), "")
}
