package main

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// handshakeTimeout is the time for clients to finish a TCP handshake that has begun.
	handshakeTimeout = 20 * time.Millisecond
	// acceptTimeout limits the wait of open connections to be accepted, which happens at the connection limit.
	acceptTimeout = time.Second
)

// stopAccepting lets the server accept open connections, and drops the packets that open more: those clients retry a
// second later and find the listener closed. Closing a listener without this resets connections that wait to be
// accepted.
func stopAccepting(listener net.Listener) {
	raw, err := listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		const flags, syn = 13, 2 // offsets in a TCP header: the flags, and the SYN flag
		program := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
			{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: syn, Jt: 0, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: 0},
			{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
		}
		filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter)
	})
	if err != nil {
		return
	}
	time.Sleep(handshakeTimeout)
	for end := time.Now().Add(acceptTimeout); waiting(raw) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// waiting reports whether connections wait to be accepted.
func waiting(raw syscall.RawConn) (waiting bool) {
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		waiting = err == nil && n > 0
	})
	return waiting
}
