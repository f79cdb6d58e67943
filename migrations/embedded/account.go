package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system's user that Postgres runs as, which refuses
// to run as root. A nil account is the user of this process.
type account struct {
	name     string
	uid, gid uint32
	caps     []uintptr // capabilities that it needs to enter the data folder
}

// chooseAccount finds the user to run as: for root the owner of the cluster, or for a new cluster postgres or else
// nobody. Other users must own the cluster and run it themselves.
func chooseAccount(cluster string) (*account, error) {
	owner, group, exists := uint32(0), uint32(0), false
	if info, err := os.Stat(cluster); err == nil {
		stat := info.Sys().(*syscall.Stat_t)
		owner, group, exists = stat.Uid, stat.Gid, true
	}
	if me := os.Geteuid(); me != 0 {
		if exists && owner != uint32(me) {
			return nil, fmt.Errorf("cluster %s belongs to %s: run as that user or as root", cluster, userName(owner))
		}
		return nil, nil
	}
	if exists && owner != 0 {
		id := strconv.FormatUint(uint64(owner), 10)
		a, err := lookup(user.LookupId(id))
		if _, nameless := errors.AsType[user.UnknownUserIdError](err); nameless {
			return &account{name: id, uid: owner, gid: group}, nil
		}
		return a, err
	}
	a, err := lookup(user.Lookup("postgres"))
	if err != nil {
		a, err = lookup(user.Lookup("nobody"))
	}
	if err != nil {
		return nil, errors.New("as root, Postgres needs a user postgres or nobody to run as, and there is none")
	}
	if exists { // made by root, by copying for instance
		if err := a.ownAll(cluster); err != nil {
			return nil, fmt.Errorf("cannot give cluster %s to user %s: %w", cluster, a.name, cause(err))
		}
	}
	return a, nil
}

func lookup(u *user.User, err error) (*account, error) {
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &account{name: u.Username, uid: uint32(uid), gid: uint32(gid)}, nil
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return "user " + u.Username
	}
	return "user " + id
}

// own gives a file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

func (a *account) ownAll(folder string) error {
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return a.own(path)
	})
}

// command prepares a program of Postgres. It gets an environment without this
// process's secrets and without PG* variables.
func (a *account) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	if a != nil && len(a.caps) > 0 {
		// Capabilities take effect with the first exec. So that first program
		// must be one that can be reached without them.
		cmd = exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `exec "$@"`, "sh", program}, args...)...)
	}
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	return cmd
}

// grantReach makes sure that the account can enter the data folder: a clone of
// root's often lies below /root, which others cannot enter.
func (p *Postgres) grantReach() error {
	if p.runAs == nil || p.runAs.reaches(p.dir) {
		return nil
	}
	p.runAs.caps = passages()
	if len(p.runAs.caps) > 0 && p.runAs.reaches(p.dir) {
		p.log.Info("Postgres may pass folders that its user cannot enter", "user", p.runAs.name, "folder", p.dir)
		return nil
	}
	return fmt.Errorf(
		"as root, Postgres runs as user %s, who cannot enter %s: name a data folder elsewhere or do not run as root",
		p.runAs.name, p.dir,
	)
}

// reaches reports whether the account can enter a folder. It tries: other rules
// than file modes may apply.
func (a *account) reaches(dir string) bool {
	cmd := a.command(context.Background(), "/bin/sh", "-c", `cd "$1"`, "sh", dir)
	cmd.SysProcAttr = a.attributes(0)
	return cmd.Run() == nil
}
