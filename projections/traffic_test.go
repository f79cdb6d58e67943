package projections_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/projections"
	"flagledger/projections/models"
)

// named opens a connection with the application name of a part of the service.
func (w *world) named(name string) *pgx.Conn {
	w.t.Helper()
	config, err := pgx.ParseConfig(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = name
	conn, err := pgx.ConnectConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { projections.Disconnect(conn) })
	return conn
}

func (w *world) traffic() projections.Traffic {
	w.t.Helper()
	traffic, err := projections.NewTraffic(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(traffic.Close)
	return traffic
}

func TestWhatServersReadAndChangeIsTraffic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	traffic := w.traffic()
	reader, projector, builder := w.named("flagledger"), w.named("flagledger projector"), w.named("flagledger rebuild")
	_, since, err := traffic.Since(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		conn *pgx.Conn
		sql  string
		want bool
	}{
		{"nothing", reader, "", false},
		{"a read", reader, "select 1", true},
		{"the fetching of jobs", reader, "-- name: JobGetAvailable :many\nselect 1", false},
		{"a change of a read model", projector, "select 1", true},
		{"a rebuild", builder, "select 1", false},
		{"a transaction that stays open", projector, "begin", true},
		{"nothing beside it", builder, "", true},
		{"its end", projector, "commit", true},
		{"nothing after it", builder, "", false},
	} {
		if c.sql != "" {
			if _, err := c.conn.Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
		}
		var busy bool
		if busy, since, err = traffic.Since(t.Context(), since); err != nil || busy != c.want {
			t.Errorf("%s: traffic %v, %v; want %v", c.what, busy, err, c.want)
		}
	}
}

// A rebuild yields while there is traffic, and still completes.
func TestARebuildBesideTraffic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	newWorkload(2).run(t, w.store, 300)
	w.switchFlag("a", 1200)
	w.carryOn()
	w.settle()
	before := w.dump()
	traffic := w.traffic()
	w.background(traffic.Watch)
	busy := w.named("flagledger")
	if _, err := busy.Exec(t.Context(), "begin"); err != nil {
		t.Fatal(err)
	}
	w.eventually("the traffic is seen", traffic.Present)
	w.rebuild(models.All()...)
	w.same("a rebuild beside traffic", before)
	if _, err := busy.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	w.eventually("the traffic is over", func() bool { return !traffic.Present() })
}
