package quota

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"flagledger/events"
)

const (
	// slowedFor is how long an attempt waits once an account has many wrong ones from all networks together.
	slowedFor = 3 * time.Second
	// slowedAtOnce is how many attempts of a wide network wait for an account at once; further ones are refused.
	slowedAtOnce = 3
)

var slowed = fmt.Sprintf("other networks wait %s, %d attempts of each %s at once, the others 429",
	events.PeriodText(slowedFor), slowedAtOnce, PerWide)

func newSlowed() *Queue {
	return NewQueue(QueueLimits{Slots: maxWindows, FlowSlots: slowedAtOnce, Waiting: 0})
}

// Attempt is an attempt to use a secret for an account from a network.
type Attempt struct {
	limiter *Limiter
	pair    string // account and network
	account string
	slowed  bool // the account's count was full before this attempt
}

// CountAttempt counts an attempt with a secret, whether or not the account exists. If the network's budget is exceeded,
// it returns that and does not count.
//
// After too many from all networks, attempts from networks other than the account's own wait, a few of each wide
// network at once. The error is ctx's.
func (l *Limiter) CountAttempt(ctx context.Context, account string, network netip.Addr) (*Attempt, Budget, error) {
	a := &Attempt{limiter: l, pair: digest(account, network.String()), account: digest(account, "")}
	left := l.take(networkSecrets, a.pair)
	if left.Exceeded {
		return nil, left, nil
	}
	a.slowed = l.take(accountSecrets, a.account).Exceeded
	if !a.slowed || l.used(ownNetworks, a.pair) > 0 {
		return a, left, nil
	}
	err := l.slowDown(ctx, digest(account, wide(network).String()))
	if err == nil {
		return a, left, nil
	}
	l.release(networkSecrets, a.pair)
	if errors.Is(err, ErrFlowBusy) || errors.Is(err, ErrNodeBusy) {
		return nil, Spent(slowedAtOnce, slowedFor), nil
	}
	return nil, Budget{}, err
}

// slowDown waits, unless as many attempts of the network wait already.
func (l *Limiter) slowDown(ctx context.Context, network string) error {
	slot, err := l.slowed.Enter(ctx, network)
	if err != nil {
		return err
	}
	defer slot.Leave()
	timer := time.NewTimer(slowedFor)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Forgive uncounts the attempt: its secret was not wrong.
func (a *Attempt) Forgive() {
	a.limiter.release(networkSecrets, a.pair)
	if !a.slowed {
		a.limiter.release(accountSecrets, a.account)
	}
}

// Succeed uncounts the attempt and marks the network as the account's own.
func (a *Attempt) Succeed() {
	a.Forgive()
	a.limiter.take(ownNetworks, a.pair)
}

// digest hashes an account's name and what it is counted by, so that memory holds neither.
func digest(account, by string) string {
	sum := sha256.Sum256([]byte(account + "\x00" + by))
	return string(sum[:])
}
