//go:build !linux

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes for a child that runs as the account, in a process group of its own: Ctrl-C reaches this process alone,
// which then stops Postgres in order. There is no signal on the parent's death here, so the next start ends a server
// that was left behind.
func (a *account) attributes(syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// passages is empty: there are no capabilities here.
func passages() []uintptr { return nil }

// commandLine is empty if there is no such process.
func commandLine(pid int) string {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
