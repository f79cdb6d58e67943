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
//
// With -short, tests that need a database are skipped.
package pgtest

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
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

// server is the server of this test process.
var server struct {
	sync.Mutex
	inMain bool
	url    string
	err    error
	stop   func() error
	admin  *pgxpool.Pool // creates and drops databases; nil until first used
}

// templates holds the databases that this test process copies, by the name of their content.
var templates sync.Map // of *template

type template struct {
	sync.Once
	database string
	err      error
}

// Main runs a package's tests and ends, stops the server that the tests may have started, and exits with their result.
func Main(m *testing.M, ends ...func()) {
	server.Lock()
	server.inMain = true
	server.Unlock()

	code := m.Run()
	for _, end := range ends {
		end()
	}

	if drops.Wait(); drops.err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", drops.err)
		code = max(code, 1)
	}

	if server.stop == nil { // the server does not belong to this process
		dropTemplates(os.Getenv(EnvURL))
	}
	server.Lock()
	defer server.Unlock()
	if server.admin != nil {
		server.admin.Close()
	}
	if server.stop != nil {
		if err := server.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// URL returns the address of a new, empty database. It is dropped when the test ends, even if clients are connected.
func URL(t testing.TB) string {
	t.Helper()
	base := serverURL(t)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatalf("pgtest: %s is not a URL", EnvURL)
	}
	u.Path = "/" + create(t, base, "")
	return u.String()
}

// Filled is URL for a database with content. fill runs once for each name in a test process, and later databases are
// copies, which is much faster. fill must close all its connections.
func Filled(t testing.TB, name string, fill func(ctx context.Context, url string) error) string {
	t.Helper()
	base := serverURL(t)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatalf("pgtest: %s is not a URL", EnvURL)
	}
	held, _ := templates.LoadOrStore(name, &template{})
	source := held.(*template)
	source.Do(func() { source.database, source.err = newTemplate(base, fill) })
	if source.err != nil {
		t.Fatalf("pgtest: filling a database: %v", source.err)
	}
	u.Path = "/" + create(t, base, source.database)
	return u.String()
}

// create creates a database, empty or a copy of another, that is dropped when the test ends.
func create(t testing.TB, base, source string) (name string) {
	t.Helper()
	name = newName()
	statement := "CREATE DATABASE " + name
	if source != "" {
		statement += " TEMPLATE " + source
	}
	if err := administer(t.Context(), base, statement); err != nil {
		t.Fatalf("pgtest: creating a database: %v", err)
	}
	t.Cleanup(func() { drops.Go(func() { drop(base, name) }) })
	return name
}

// drops runs the drops of finished tests' databases one at a time. Each one flushes Postgres's memory to disk, which no
// other test should wait for.
var drops struct {
	sync.WaitGroup
	sync.Mutex // one drop at a time
	err        error
}

func drop(base, name string) {
	drops.Lock()
	defer drops.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := administer(ctx, base, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
		drops.err = errors.Join(drops.err, fmt.Errorf("dropping a database: %w", err))
	}
}

func newName() string { return "test_" + strings.ToLower(rand.Text()[:16]) }

// newTemplate makes a database, fills it, and lets nobody connect to it after:
// Postgres copies only databases that are not in use.
func newTemplate(base string, fill func(ctx context.Context, url string) error) (name string, err error) {
	ctx := context.Background()
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	name = newName()
	u.Path = "/" + name
	if err := administer(ctx, base, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	if err := fill(ctx, u.String()); err != nil {
		return "", err
	}
	return name, administer(ctx, base, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
}

func dropTemplates(base string) {
	templates.Range(func(_, held any) bool {
		if name := held.(*template).database; name != "" {
			if err := administer(context.Background(), base, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
				fmt.Fprintln(os.Stderr, "pgtest:", err)
			}
		}
		return true
	})
}

// Migrated is URL for a database at the newest schema.
func Migrated(t testing.TB) string {
	t.Helper()
	return Filled(t, "migrated", func(ctx context.Context, url string) error {
		return migrations.Apply(ctx, url, slog.New(slog.DiscardHandler))
	})
}

// Pool returns a pool of connections to a Migrated database. It is closed after the test.
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
	if testing.Short() {
		t.Skip("it needs a Postgres, and -short is set")
	}
	if u := os.Getenv(EnvURL); u != "" {
		return u
	}
	server.Lock()
	defer server.Unlock()
	if !server.inMain {
		t.Fatal("pgtest: the package's TestMain must call pgtest.Main, which stops the server in the end")
	}
	if server.url == "" && server.err == nil {
		server.url, server.stop, server.err = Cluster(context.Background(), os.TempDir())
	}
	if server.err != nil {
		t.Fatalf("pgtest: %v", server.err)
	}
	return server.url
}

// administer runs a statement on the server. It reuses its connections, because a new one takes longer than a copy of a
// database.
func administer(ctx context.Context, base, sql string) error {
	server.Lock()
	if server.admin == nil {
		admin, err := pgxpool.New(context.Background(), base)
		if err != nil {
			server.Unlock()
			return err
		}
		server.admin = admin
	}
	admin := server.admin
	server.Unlock()
	_, err := admin.Exec(ctx, sql)
	return err
}

func exec(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// settings turn off what only a lasting database needs: full pages in the log, which each checkpoint would repeat, and
// autovacuum workers.
var settings = []string{
	"max_connections=500",
	"full_page_writes=off",
	"wal_level=minimal",
	"max_wal_senders=0",
	"autovacuum=off",
}

// Cluster starts a private server in a new folder of parent. stop stops it and removes the folder. If the process is
// killed, a later Cluster with the same parent removes the folder.
func Cluster(ctx context.Context, parent string) (url string, stop func() error, err error) {
	sweep(ctx, parent)
	dir, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		return "", nil, err
	}
	// As root, Postgres runs as another user, who needs access.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	p, err := embedded.Start(ctx, embedded.Options{Dir: dir, Settings: settings})
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() error { return errors.Join(p.Stop(), os.RemoveAll(dir)) }
	if err := quickLogin(ctx, p.URL()); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return p.URL(), stop, nil
}

// quickLogin lets the server check passwords with one iteration of SCRAM-SHA-256 (RFC 5802) instead of 4096. Tests with
// the race detector would spend a tenth of their time on them.
func quickLogin(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	password, _ := u.User.Password()
	salt := []byte(rand.Text())
	salted, err := pbkdf2.Key(sha256.New, password, salt, 1, sha256.Size)
	if err != nil {
		return err
	}
	sign := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	verifier := fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", encode(salt), encode(stored[:]), encode(sign("Server Key")))
	return exec(ctx, address,
		fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", pgx.Identifier{u.User.Username()}.Sanitize(), verifier))
}

// sweep removes the folders of killed processes. It leaves young ones, which may be about to be used.
func sweep(ctx context.Context, parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
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
