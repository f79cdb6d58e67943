package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// superuser is the only database role; its password is in dir/postgres.password.
const superuser = "flagledger"

// settings hold for every start; given on the command line, they cannot be
// changed from SQL or a configuration file.
var settings = []string{
	"listen_addresses=127.0.0.1",
	"unix_socket_directories=",
	"fsync=on",
	"synchronous_commit=on",
	"full_page_writes=on",
	"max_connections=200",
	"shared_buffers=128MB",
	"jit=off",
	"timezone=UTC",
	"log_timezone=UTC",
	"log_line_prefix=%m [%p] ",
	// Callers report failed statements. In the log they would leave copies of
	// personal data.
	"log_min_messages=log",
	"log_checkpoints=off",
	"cluster_name=flagledger",
}

// clusterMajor is the major version that made the cluster; 0 if there is none.
func clusterMajor(cluster string) (int, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Lstat(cluster); err == nil {
			return 0, fmt.Errorf("%s is not a Postgres cluster (it has no PG_VERSION): move it away or name another data folder",
				cluster)
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read cluster %s: %w", cluster, cause(err))
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || major <= 0 {
		return 0, fmt.Errorf("%s/PG_VERSION holds no version", cluster)
	}
	return major, nil
}

// initCluster makes the cluster and its password. It works in another folder and
// renames it at the end, so that a cluster is whole or not there.
func (p *Postgres) initCluster(ctx context.Context) error {
	const prefix = "postgres.new-"
	leftovers, _ := filepath.Glob(filepath.Join(p.dir, prefix+"*"))
	for _, l := range leftovers {
		_ = os.RemoveAll(l)
	}

	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	p.password = hex.EncodeToString(secret)
	if err := writePassword(p.dir, p.password); err != nil {
		return err
	}

	failed := func(err error) error { return fmt.Errorf("cannot make a cluster in %s: %w", p.dir, cause(err)) }
	pwfile, err := os.CreateTemp(p.dir, prefix)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.Remove(pwfile.Name()) }()
	_, err = pwfile.WriteString(p.password + "\n")
	if cerr := pwfile.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return failed(err)
	}
	work, err := os.MkdirTemp(p.dir, prefix)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	for _, path := range []string{pwfile.Name(), work} {
		if err := p.runAs.own(path); err != nil {
			return failed(err)
		}
	}

	if err := p.initdb(ctx, work, pwfile.Name()); err != nil {
		return err
	}
	if err := os.Rename(work, p.cluster); err != nil {
		return failed(err)
	}
	if err := syncDir(p.dir); err != nil {
		return failed(err)
	}
	return nil
}

func (p *Postgres) initdb(ctx context.Context, cluster, pwfile string) error {
	cmd := p.runAs.command(context.Background(), p.bin.dir+"/initdb",
		"--pgdata="+cluster,
		"--username="+superuser,
		"--pwfile="+pwfile,
		"--auth-host=scram-sha-256",
		"--auth-local=reject",
		"--encoding=UTF8",
		"--locale=C",
	)
	cmd.SysProcAttr = p.runAs.attributes(syscall.SIGKILL)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second

	// The signal on the parent's death comes when the forking thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	ended := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	ended()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("initdb: %w", ctx.Err())
	}
	if strings.Contains(out.String(), "could not look up effective user ID") {
		id := os.Geteuid()
		if p.runAs != nil {
			id = int(p.runAs.uid)
		}
		return fmt.Errorf(
			"the user id %d has no name, and Postgres makes no database for it: add a line for it to /etc/passwd, "+
				"run as another user, or name a Postgres in FLAGLEDGER_DATABASE_URL",
			id,
		)
	}
	why := lastLine(out.String())
	if why == "" {
		why = err.Error()
	}
	return fmt.Errorf("initdb: %s", why)
}

// ensureDatabase creates database flagledger where it is missing.
func ensureDatabase(ctx context.Context, port int, password string) error {
	conn, err := pgx.Connect(ctx, address(port, password, "flagledger"))
	if err == nil {
		return conn.Close(ctx)
	}
	var pe *pgconn.PgError
	switch {
	case !errors.As(err, &pe):
		return fmt.Errorf("cannot connect to the private Postgres: %w", err)
	case pe.Code == "28P01":
		return errors.New("postgres.password in the data folder is not the password of the cluster beside it")
	case pe.Code != "3D000": // it does not exist
		return fmt.Errorf("cannot connect to the private Postgres: %s", pe.Message)
	}
	conn, err = pgx.Connect(ctx, address(port, password, "postgres"))
	if err != nil {
		return fmt.Errorf("cannot connect to the private Postgres: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "CREATE DATABASE flagledger"); err != nil {
		return fmt.Errorf("cannot create database flagledger: %w", err)
	}
	return nil
}

func readPassword(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "postgres.password"))
	if err != nil {
		return "", fmt.Errorf("cannot read the password in data folder %s: %w", dir, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func writePassword(dir, password string) error {
	final := filepath.Join(dir, "postgres.password")
	f, err := os.CreateTemp(dir, "postgres.new-") // mode 0600
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", final, cause(err))
	}
	_, err = f.WriteString(password + "\n")
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), final)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("cannot write %s: %w", final, cause(err))
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
