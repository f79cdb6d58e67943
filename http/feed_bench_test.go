package http_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

// BenchmarkFeed measures what 1,000 readers of each of ten tenants' feeds cost a node: its memory, and a change a second
// of one tenant after the other, until the answer and until the last reader has it, beside changes without readers.
// Each reader is told a change in the same bytes; "bytes-ratio" is their number by that of the flag as the API shows it.
func BenchmarkFeed(b *testing.B) {
	const tenants, readers = 10, 1000
	i := nodetest.Build(b)
	node := i.Serve("FLAGLEDGER_DATABASE_URL=" + pgtest.URL(b))
	var changed []*nodetest.Client
	var keys []*nodetest.Client
	for n := range tenants {
		me := i.Service().SignUp(fmt.Sprintf("me%d@example.com", n))
		benchFlag(me)
		_, key := createKey(me, "server", map[string]any{"edge": true})
		changed, keys = append(changed, me), append(keys, key)
	}
	change := func(n int) time.Duration {
		began := time.Now()
		changed[n%tenants].Call("POST", nodetest.FlagPath("checkout")+[]string{"/disable", "/enable"}[n/tenants%2], nil).Want(200)
		return time.Since(began)
	}
	var before, beside, last nodetest.Samples
	for n := range 2 * tenants {
		change(n) // warms up
	}
	for n := range 2 * tenants {
		second := time.After(time.Second)
		before.Add(change(n))
		<-second
	}

	memory := residentMemory(b, node.Process.Pid)
	var ready, told atomic.Int64
	var size atomic.Int64
	for n, key := range keys {
		for range readers {
			go readBareFeed(b, key, n, &ready, &told, &size)
		}
		i.Service().Eventually("the readers have the full state", func() bool { return ready.Load() == int64(n+1)*readers })
	}
	memory = residentMemory(b, node.Process.Pid) - memory
	n := 0
	for b.Loop() {
		told.Store(0)
		second, began := time.After(time.Second), time.Now()
		beside.Add(change(n))
		i.Service().Eventually("all readers of the tenant are told", func() bool { return told.Load() == readers })
		last.Add(time.Since(began))
		n++
		<-second
	}
	b.ReportMetric(float64(memory)/tenants/readers/1024, "KiB-per-reader")
	last.Report(b, 50)
	b.ReportMetric(float64(beside.Percentile(50))/float64(before.Percentile(50)), "times-alone")
	flag := changed[0].Call("GET", nodetest.FlagPath("checkout"), nil).Want(200)
	b.ReportMetric(float64(size.Load())/float64(len(flag.Body)), "bytes-ratio")
}

// readBareFeed reads a feed from an address of its tenant, and counts what it is told. size is set to the bytes of a
// change.
func readBareFeed(b *testing.B, key *nodetest.Client, tenant int, ready, told, size *atomic.Int64) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+tenant))}}
	conn, err := dialer.DialContext(b.Context(), "tcp", strings.TrimPrefix(key.Service.URL, "http://"))
	if err != nil {
		b.Error(err)
		return
	}
	b.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", feedPath, conn.RemoteAddr(), key.Token)
	first, bytesOf := true, 0
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		line := lines.Bytes()
		if !bytes.HasPrefix(line, []byte("data: ")) {
			continue
		}
		bytesOf += len(line)
		if !bytes.Contains(line, []byte(`"type":"ready"`)) {
			continue
		}
		if first {
			ready.Add(1)
		} else {
			size.Store(int64(bytesOf))
			told.Add(1)
		}
		first, bytesOf = false, 0
	}
}

// residentMemory returns the memory of a process in bytes. It works only on Linux.
func residentMemory(b *testing.B, pid int) int {
	b.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		b.Skip("the memory of a process is read from /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kibibytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return kibibytes * 1024
}
