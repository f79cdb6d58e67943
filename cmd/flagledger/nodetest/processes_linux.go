package nodetest

import (
	"bytes"
	"os"
	"strconv"
	"testing"
)

// processes returns the command line of each process by its id.
func processes(t testing.TB) map[int]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	list := map[int]string{}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			list[pid] = commandOf(pid)
		}
	}
	return list
}

// commandOf returns the command line of a process, empty if there is none.
func commandOf(pid int) string {
	arguments, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return string(bytes.ReplaceAll(arguments, []byte{0}, []byte(" ")))
}
