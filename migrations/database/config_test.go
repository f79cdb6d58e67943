package database_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/migrations/database"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T, url string, settings map[string]string) *pgxpool.Pool {
	t.Helper()
	config, err := database.PoolConfig(url, settings)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.ConnConfig.RuntimeParams {
		if name != "application_name" {
			t.Errorf("%s is sent before the session begins", name)
		}
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestSettingsAreMadeInTheSession(t *testing.T) {
	t.Parallel()
	pool := open(t,
		pgtest.URL(t)+"&application_name=me&search_path=a'b&timezone=Asia/Tokyo&pool_max_conns=3&lock_timeout=1s",
		map[string]string{"lock_timeout": "5s"})
	var got string
	const sql = "select concat_ws(' ', current_setting('application_name'), current_setting('search_path'), current_setting('timezone'), current_setting('lock_timeout'))"
	if err := pool.QueryRow(t.Context(), sql).Scan(&got); err != nil || got != "me a'b Asia/Tokyo 5s" {
		t.Errorf("the settings are %q: %v", got, err)
	}
}

func TestAConnectionEndsWhenAWriteIsRefused(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.URL(t), nil)
	for _, readOnly := range []string{"on", "off"} {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(
			t.Context(), "select set_config('default_transaction_read_only', $1, false)", readOnly,
		); err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), "create table "+readOnly+"_ ()")
		if refused := readOnly == "on"; database.IsReadOnlyError(err) != refused || conn.Conn().IsClosed() != refused {
			t.Errorf("read-only %s: %v; the connection is closed: %v", readOnly, err, conn.Conn().IsClosed())
		}
		conn.Release()
	}
}

func TestReadOnlyErrorsAreRecognised(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&pgconn.PgError{Code: "25006"}:                                     true,
		&pgconn.PgError{Code: "55000", Message: "recovery is in progress"}: true,
		&pgconn.PgError{Code: "55000", Message: "currval is not defined"}:  false,
		database.ErrReadOnly: true,
		pgx.ErrNoRows:        false,
	} {
		if database.IsReadOnlyError(err) != want {
			t.Errorf("%v says that a server takes no writes: %v", err, !want)
		}
	}
}
