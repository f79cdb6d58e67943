//go:build !linux

package main

import "net"

// stopAccepting does nothing where the kernel has no filter for it.
func stopAccepting(net.Listener) {}
