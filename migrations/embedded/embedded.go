// Package embedded runs the private Postgres of the zero-setup default: a child process with its cluster in the data
// folder. It listens only on loopback and exits with this process.
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
	// ErrInUse reports that another process uses the data folder. The wrapping error names the folder and the process.
	ErrInUse = errors.New("data folder is in use")
	// ErrNotRunning reports that no server is running on the data folder.
	ErrNotRunning = errors.New("no server is running")
)

// Options configure Start.
type Options struct {
	// Dir is the data folder, created if missing. It holds lock, postgres (the cluster), postgres.password and
	// postgres.log, and bin if no cache folder is writable.
	Dir string
	// Settings are additional server settings, as name=value. They override the defaults.
	Settings []string
	// Log reports downloads, restarts and leftover servers. If nil, nothing is logged.
	Log *slog.Logger
}

// Postgres is a running server. It is started again, on the same port, whenever
// it dies before Stop.
type Postgres struct {
	dir      string // absolute, without symbolic links
	cluster  string // dir/postgres
	bin      binaries
	runAs    *account // nil: the user of this process
	settings []string // from Options
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

// Start runs a server on the data folder and returns when it accepts connections. ctx limits only the start. The first
// start creates the cluster. If no Postgres is installed, npm downloads one.
//
// If a previous server outlived its parent, Start waits about ten seconds for it to exit. Start returns ErrInUse if
// another process holds the folder. Error texts fit on one line.
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

// URL returns the address of database flagledger with the superuser's credentials. It does not change until Stop.
func (p *Postgres) URL() string { return address(p.port, p.password, "flagledger") }

// PID returns the postmaster's process id, or 0 if it is not running.
func (p *Postgres) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur == nil {
		return 0
	}
	return p.cur.pid
}

// Stop shuts the server down within ten seconds and releases the folder. It is idempotent. It returns an error if the
// server had to be killed; committed data is safe.
func (p *Postgres) Stop() error {
	p.quit()
	<-p.done
	return p.stopErr
}

// Connect returns the URL of the server that another process runs on the data folder. It waits while that server
// starts, and returns ErrNotRunning if there is none.
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

// unsetShellVariables unsets all PG* environment variables. They configure the user's own Postgres clients, and libpq
// would merge them with our URL.
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

// makeDir creates the data folder and returns its absolute path without symbolic links. That path identifies a server.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no data folder is named")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data folder %s: %w", dir, err)
	}
	// Under root, Postgres runs as a different user and must enter. Secret files have their own modes.
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", fmt.Errorf("cannot create data folder %s: %w", abs, cause(err))
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", fmt.Errorf("data folder %s: %w", dir, cause(err))
	}
	return abs, nil
}

// cause strips the operation and path from a path error. The caller's message names them.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
