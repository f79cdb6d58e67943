package rest

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"

	"flagledger/commands"
	"flagledger/http/quota"
)

// Hashing shares the hashing of passwords fairly among client networks, an IPv4 /24 or IPv6 /48 each, so that a flood
// of sign-ins from some does not delay others. One hash takes 19 MiB and about 20 ms.
type Hashing struct{ queue *quota.Queue }

const hashingWaiting = 100 // passwords of a network

// NewHashing lets half the cores hash, so that evaluations continue during a flood. A password waits up to timeout,
// five seconds if it is 0.
func NewHashing(timeout time.Duration) *Hashing {
	cores := max(1, runtime.GOMAXPROCS(0)/2)
	return &Hashing{
		quota.NewQueue(
			quota.QueueLimits{
				Slots:       cores,
				FlowSlots:   max(1, cores/2),
				FlowWaiting: hashingWaiting,
				Waiting:     nodeWaiting,
				Timeout:     cmp.Or(timeout, QueueTimeout),
			},
		),
	}
}

// Run calls hash in a slot of the request's network. After the timeout it returns TooMany if the network's own
// requests are the cause, and otherwise Unavailable.
func (h *Hashing) Run(ctx context.Context, hash func()) error {
	network := "" // without a request
	if req, ok := ctx.Value(requestKey{}).(*request); ok {
		network = req.limiter.WideNetwork(req.received).String()
	}
	slot, err := h.queue.Enter(ctx, network)
	switch {
	case errors.Is(err, quota.ErrFlowBusy):
		return &commands.Error{
			Kind:   commands.TooMany,
			Detail: "too many sign-ins from the client's network at this moment",
			AtOnce: h.queue.FlowSlots(),
			Err:    err,
		}
	case err != nil:
		return &commands.Error{Kind: commands.Unavailable, Detail: "too many sign-ins at this moment", Err: err}
	}
	defer slot.Leave()
	hash()
	return nil
}
