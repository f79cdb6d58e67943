//go:build !linux

package nodetest

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// processes returns the command line of each process by its id.
func processes(t testing.TB) map[int]string {
	t.Helper()
	printed, err := exec.Command("ps", "-A", "-o", "pid=,command=").Output()
	if err != nil {
		t.Fatal(err)
	}
	list := map[int]string{}
	for line := range strings.Lines(string(printed)) {
		first, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pid, err := strconv.Atoi(first); err == nil {
			list[pid] = command
		}
	}
	return list
}

// commandOf returns the command line of a process, empty if there is none.
func commandOf(pid int) string {
	printed, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return string(printed)
}
