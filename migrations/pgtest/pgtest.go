// Package pgtest gives tests real Postgres databases.
//
// They are made on the server that FLAGLEDGER_TEST_DATABASE_URL names (its user
// must be allowed to create databases); without it, the test process starts a
// private server in a temporary folder on first use. A package that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// To share one server among the packages of a test run:
//
//	go run ./migrations/pgtest/pgrun go test ./...
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/migrations"
	"flagledger/migrations/embedded"
)

// EnvURL names the setting with the URL of the server to use.
const EnvURL = "FLAGLEDGER_TEST_DATABASE_URL"

const folderPrefix = "flagledger-pgtest-"

// server is the one that this test process uses.
var server struct {
	sync.Mutex
	inMain bool
	url    string
	err    error
	stop   func() error
}

// Main runs a package's tests, stops the server that they may have started and
// exits with their result.
func Main(m *testing.M) {
	server.Lock()
	server.inMain = true
	server.Unlock()

	code := m.Run()

	server.Lock()
	defer server.Unlock()
	if server.stop != nil {
		if err := server.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// URL gives the address of a fresh, empty database of this test's own. It is
// dropped when the test ends, whoever is still connected.
func URL(t testing.TB) string {
	t.Helper()
	base := serverURL(t)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatalf("pgtest: %s is not a URL", EnvURL)
	}
	name := "test_" + strings.ToLower(rand.Text()[:16])
	if err := exec(t.Context(), base, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("pgtest: creating a database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := exec(ctx, base, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: dropping the database: %v", err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

// Migrated is URL for a database at the newest schema.
func Migrated(t testing.TB) string {
	t.Helper()
	url := URL(t)
	if err := migrations.Apply(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return url
}

// Pool gives connections to a Migrated database until the test ends.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), Migrated(t))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func serverURL(t testing.TB) string {
	t.Helper()
	if u := os.Getenv(EnvURL); u != "" {
		return u
	}
	server.Lock()
	defer server.Unlock()
	if !server.inMain {
		t.Fatal("pgtest: the package's TestMain must call pgtest.Main, which stops the server in the end")
	}
	if server.url == "" && server.err == nil {
		server.url, server.stop, server.err = Cluster(context.Background())
	}
	if server.err != nil {
		t.Fatalf("pgtest: %v", server.err)
	}
	return server.url
}

func exec(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// Cluster starts a private server in a temporary folder. stop stops it and
// removes the folder; a process that is killed before leaves the folder to a
// later Cluster.
func Cluster(ctx context.Context) (url string, stop func() error, err error) {
	sweep(ctx)
	dir, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return "", nil, err
	}
	// As root, Postgres runs as another user, who must be able to enter.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	p, err := embedded.Start(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p.URL(), func() error { return errors.Join(p.Stop(), os.RemoveAll(dir)) }, nil
}

// sweep removes the folders of processes that were killed. A young one may be
// about to be used.
func sweep(ctx context.Context) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		probe, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		if _, err := embedded.Connect(probe, dir); errors.Is(err, embedded.ErrNotRunning) {
			_ = os.RemoveAll(dir)
		}
		cancel()
	}
}
