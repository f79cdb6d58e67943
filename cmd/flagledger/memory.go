package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

const reservedHeap = 64 << 20

// reserveHeap makes the garbage collector wait for 64 MiB of garbage at least: without it, a small node under load
// would collect dozens of times a second. The reserve is never touched, so it takes no memory itself; release gives it
// back.
func reserveHeap() (release func()) {
	reserve := make([]byte, reservedHeap)
	return func() { runtime.KeepAlive(reserve) }
}

// collectSeldom lets as much garbage gather as four times what is in use, unless GOGC says otherwise: a rebuild makes
// much of it and keeps little.
func collectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
