package http_test

import (
	"context"
	"sync"

	"flagledger/http/quota"
)

// occupy takes all slots of a queue that a flow may have, and all its waiting work, until free is called.
func occupy(q *quota.Queue, flow string) (free func()) {
	ctx, cancel := context.WithCancel(context.Background())
	full := make(chan struct{})
	once := sync.OnceFunc(func() { close(full) })
	var all sync.WaitGroup
	for range q.Limits().FlowSlots + q.Limits().FlowWaiting + 1 { // one more than allowed: it is refused at once
		all.Go(func() {
			slot, err := q.Enter(ctx, flow)
			if err != nil {
				once()
				return
			}
			<-ctx.Done()
			slot.Leave()
		})
	}
	<-full
	return func() {
		cancel()
		all.Wait()
	}
}
