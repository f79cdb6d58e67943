package main

import (
	"os"
	"runtime/debug"
)

const (
	// serverGCPercent is how much garbage may gather, as a share of the memory in use: an evaluation over HTTP leaves
	// some KB, most of it by net/http, and the collector would run dozens of times a second on a small node.
	serverGCPercent = 300
	// rebuildGCPercent is that of a rebuild, which makes much garbage and keeps little.
	rebuildGCPercent = 400
)

// setGCPercent sets it, unless GOGC does.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
