package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Each opened connection is accepted, even if the listener is closed meanwhile.
func TestStopAcceptingResetsNoConnection(t *testing.T) {
	t.Parallel()
	listener, err := listen(t.Context(), "FLAGLEDGER_ADDR", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.CopyN(conn, conn, 1)
				_ = conn.Close()
			}()
		}
	}()
	var opened atomic.Int64
	var clients sync.WaitGroup
	for range 50 {
		clients.Go(func() {
			for {
				conn, err := net.Dial("tcp", listener.Addr().String())
				if errors.Is(err, syscall.ECONNREFUSED) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				opened.Add(1)
				_, _ = conn.Write([]byte("a"))
				if _, err := io.ReadAll(conn); err != nil {
					t.Errorf("a connection that was opened is lost: %v", err)
				}
				_ = conn.Close()
			}
		})
	}
	for end := time.Now().Add(time.Minute); opened.Load() < 1000; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connections are not accepted")
		}
	}
	stopAccepting(listener)
	_ = listener.Close()
	clients.Wait()
}
