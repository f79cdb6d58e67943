package main

import (
	"os"
	"runtime/debug"
)

const (
	// serverGCPercent is the garbage that may gather, as a share of the memory in use. An evaluation over HTTP leaves
	// some KB, mostly by net/http, so the default would run the collector dozens of times a second on a small node.
	serverGCPercent = 300
	// rebuildGCPercent is the same for a rebuild, which creates much garbage and little lasting data.
	rebuildGCPercent = 400
)

// setGCPercent sets the percentage, unless GOGC does.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
