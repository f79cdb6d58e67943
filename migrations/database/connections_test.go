package database

import (
	"net"
	"sync"
	"testing"
)

// A process closes its connections when another server accepts writes. Connections to a read-only server stay, unless
// some go to one that accepts writes.
func TestAnotherWriterTakesOver(t *testing.T) {
	t.Parallel()
	all := connectionsTo(t.Name())
	connect := func(server string, readOnly bool) (c *connection, admitted bool) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		opened, err := all.add(t.Context(), nil, ours)
		if err != nil {
			t.Fatal(err)
		}
		return opened.(*connection), all.admit(opened, server, readOnly)
	}
	var old [8]*connection
	var connecting sync.WaitGroup
	for i := range old {
		connecting.Go(func() { old[i], _ = connect("old", i%2 == 1) })
	}
	connecting.Wait()
	if _, admitted := connect("standby", true); admitted {
		t.Error("a standby is used beside the server that takes writes")
	}
	current, _ := connect("new", false)
	for i, c := range old {
		if !c.closed.Load() {
			t.Errorf("connection %d to the old server is open", i)
		}
	}
	if current.closed.Load() {
		t.Error("the connection to the new server is closed")
	}
	_ = current.Close()
	if last, admitted := connect("old", true); !admitted || last.closed.Load() {
		t.Error("a server that takes no writes is not used though there is no other")
	}
}
