package postgres_test

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
)

func deleted() events.Event { return events.Event{ID: uuid.New(), Fact: events.ProjectDeleted{}} }

func (s testStore) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := connect(t, s.url).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// length returns the number of events in a stream.
func (s testStore) length(t *testing.T, stream string) (n int) {
	t.Helper()
	for _, err := range s.Read(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestOpenRefusesADatabaseThatMayLoseWrites(t *testing.T) {
	t.Parallel()
	const off = "synchronous_commit off"
	refused := func(t *testing.T, url string) {
		t.Helper()
		store, err := postgres.Open(t.Context(), url, slog.New(slog.DiscardHandler))
		if err == nil {
			store.Close()
		}
		if err == nil || !strings.Contains(err.Error(), off) {
			t.Errorf("open: %v, want a refusal that names %s", err, off)
		}
	}
	t.Run("set for the database", func(t *testing.T) {
		t.Parallel()
		address := pgtest.URL(t)
		conn := connect(t, address)
		if _, err := conn.Exec(
			t.Context(), fmt.Sprintf("alter database %s set synchronous_commit = off", conn.Config().Database),
		); err != nil {
			t.Fatal(err)
		}
		refused(t, address)
	})
	t.Run("set in the URL", func(t *testing.T) {
		t.Parallel()
		u, err := url.Parse(pgtest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		options := u.Query()
		options.Set("synchronous_commit", "off")
		u.RawQuery = options.Encode()
		refused(t, u.String())
	})
}

// The setting may change after Open. The next connection that would commit with it is refused.
func TestNoAppendWhenTheSettingChangesLater(t *testing.T) {
	t.Parallel()
	s := open(t)
	conn := connect(t, s.url)
	for _, sql := range []string{
		fmt.Sprintf("alter database %s set synchronous_commit = off", conn.Config().Database),
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the first may still use the broken connection
		if _, err := s.Append(t.Context(), "project-1", 0, []events.Event{deleted()}); err == nil {
			t.Error("an append was acknowledged with synchronous_commit off")
		}
	}
}

func TestTheCommitterWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `create table setting (value text);
		create function note_setting() returns trigger language plpgsql as $$
		begin insert into setting values (current_setting('synchronous_commit')); return new; end $$;
		create trigger note_setting after insert on events.event for each row execute function note_setting()`)
	if _, err := s.Append(t.Context(), "project-1", 0, []events.Event{deleted()}); err != nil {
		t.Fatal(err)
	}
	var value string
	if err := connect(t, s.url).QueryRow(t.Context(), "select value from setting").
		Scan(&value); err != nil ||
		value != "on" {
		t.Errorf("the append ran with synchronous_commit %s, %v", value, err)
	}
}

// refuseAtCommit makes every transaction with an append to project-refused fail at its commit, not at the insert.
func (s testStore) refuseAtCommit(t *testing.T) {
	t.Helper()
	s.exec(t, `create function refuse_at_commit() returns trigger language plpgsql as $$
		begin raise exception 'refused at commit'; end $$;
		create constraint trigger refuse_at_commit after insert on events.event deferrable initially deferred
		for each row when (new.stream = 'project-refused') execute function refuse_at_commit()`)
}

// The server sends the rows of an append before it commits.
func TestAnAppendIsAcknowledgedAfterItsCommit(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.refuseAtCommit(t)
	if _, err := s.Append(t.Context(), "project-refused", 0, []events.Event{deleted()}); err == nil ||
		!strings.Contains(err.Error(), "refused at commit") {
		t.Errorf("append: %v, want the error of its commit", err)
	}
	if n := s.length(t, "project-refused"); n > 0 {
		t.Errorf("%d events stand in the stream of a refused append", n)
	}
}

func TestARefusedAppendDoesNotFailThoseBesideIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.refuseAtCommit(t)
	streams := []string{"project-1", "project-refused", "project-2"}
	errs, err := s.AppendGroup(streams, deleted)
	if err != nil {
		t.Fatal(err)
	}
	for i, stream := range streams {
		refused := stream == "project-refused"
		if (errs[i] != nil) != refused {
			t.Errorf("append to %s: %v", stream, errs[i])
		}
		if n := s.length(t, stream); (n == 0) != refused {
			t.Errorf("%d events stand in %s", n, stream)
		}
	}
}
