package embedded

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// attributes for a child that runs as the account, in a process group of its
// own (so that Ctrl-C reaches this process alone, which then stops Postgres in
// order), and that gets a signal, unless 0, when the thread that forks it ends.
func (a *account) attributes(onParentDeath syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onParentDeath}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
		attr.AmbientCaps = a.caps
	}
	return attr
}

// The capabilities to enter folders in spite of their modes, weakest first (the
// numbers are those of linux/capability.h). Containers often have only the
// second.
const (
	capDACReadSearch = 2
	capDACOverride   = 1
)

// passages is the weakest capability of this process to enter folders in spite
// of their modes.
func passages() []uintptr {
	status, _ := os.ReadFile("/proc/self/status")
	_, permitted, _ := strings.Cut(string(status), "CapPrm:")
	permitted, _, _ = strings.Cut(permitted, "\n")
	bits, err := strconv.ParseUint(strings.TrimSpace(permitted), 16, 64)
	if err != nil {
		return nil
	}
	for _, c := range []uintptr{capDACReadSearch, capDACOverride} {
		if bits&(1<<c) != 0 {
			return []uintptr{c}
		}
	}
	return nil
}

// commandLine is empty if there is no such process, or a dead one.
func commandLine(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}
