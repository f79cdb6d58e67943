package http_test

import (
	"sync/atomic"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestAnExportEndsWithItsCallersAccess(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	fill(me, 20)
	for _, path := range []string{exportPath, exportPath + "?format=csv", auditPath + "/facts"} {
		other := me.Join("admin")
		whole := &reader{}
		if broken := answer(other, "GET", path, "", whole); broken || whole.body.Len() == 0 {
			t.Fatalf("%s: %d bytes, broken %v", path, whole.body.Len(), broken)
		}
		to := &reader{gate: make(chan struct{}), waiting: &atomic.Int64{}}
		broken := make(chan bool)
		go func() { broken <- answer(other, "GET", path, "", to) }()
		s.Eventually("the first piece is written", func() bool { return to.waiting.Load() == 1 })
		me.Call("DELETE", usersPath(me, other.UserID), nil).Want(204)
		close(to.gate)
		if !<-broken || to.body.Len() >= whole.body.Len() {
			t.Errorf("%s: the caller got %d of %d bytes after they were removed", path, to.body.Len(), whole.body.Len())
		}
	}
}
