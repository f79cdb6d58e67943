package writer

import (
	"context"
	"fmt"
	"math"
	"sync"

	"flagledger/commands"
	"flagledger/events"
)

// Quotas says what tenants may have, and counts what they write. The writer asks it for each command.
type Quotas interface {
	Limits(tenantID string) TenantLimits
	// Wrote counts bytes that a tenant's command stored.
	Wrote(tenantID string, bytes int)
}

// TenantLimits is what a tenant has and may have at a moment. Sizes are in bytes: see state.Flag.Bytes.
type TenantLimits struct {
	Refusal error // why the tenant accepts no changes, or nil

	FlagBytes, MaxFlagBytes int // of the tenant's flags
	// Creator is the creator of a free tenant, and empty for a paid one. The free tenants of a creator share a limit.
	Creator                 string
	FreeBytes, MaxFreeBytes int
}

// NoQuotas is the Quotas of commands that run beside a node: of an operator.
type NoQuotas struct{}

// Limits implements Quotas.
func (NoQuotas) Limits(string) TenantLimits {
	return TenantLimits{MaxFlagBytes: math.MaxInt, MaxFreeBytes: math.MaxInt}
}

// Wrote implements Quotas.
func (NoQuotas) Wrote(string, int) {}

// countMargin is how far below a limit exact counting begins, or a tenth of the limit if that is less. A snapshot that
// lacks more would exceed the limit.
const countMargin = 1000

// Reserve takes one unit of a limit of what other streams hold, such as a tenant's flags, until release. It returns how
// many there are, reserved ones included. Far below the limit it is optimistic. Near it, callers take turns, and each
// counts once the snapshot holds all that was appended. So one node never exceeds the limit, each further node by one
// at most.
//
// Errors are *commands.Error: TooMany after a wait of 5 s, Unavailable if the snapshot is behind.
func (w *Writer) Reserve(
	ctx context.Context, things string, limit int, count func() int,
) (n int, release func(), err error) {
	return w.reserve(ctx, things, reservation{limit: limit, margin: min(countMargin, limit/10), growth: 1, count: count})
}

// reservation is a limit, the margin below it in which counting is exact, how much the caller takes, and the count. If
// it counts a read model, the model must hold all facts of the names.
type reservation struct {
	limit, margin, growth int
	count                 func() int
	names                 []string
}

func (w *Writer) reserve(ctx context.Context, things string, r reservation) (n int, release func(), err error) {
	if r.margin < r.limit {
		if n, release, ok := w.reserved.take(things, r); ok {
			return n, release, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	release, err = w.counting.enter(ctx, things)
	if err != nil {
		return 0, nil, errLimitBusy(r.limit)
	}
	for {
		// What is released meanwhile is appended, and so in the count.
		reserved, changed := w.reserved.now(things)
		if err := w.AwaitHead(ctx, r.names); err != nil {
			release()
			return 0, nil, err
		}
		n := r.count()
		if reserved == 0 || n+reserved+r.growth <= r.limit {
			return n + reserved, release, nil
		}
		select { // some of what is reserved may be in the count too
		case <-changed:
		case <-ctx.Done():
			release()
			return 0, nil, errLimitBusy(r.limit)
		}
	}
}

func errLimitBusy(limit int) error {
	return errBusy(1, fmt.Sprintf("others are made at the same time, one after another so near the limit of %d", limit))
}

// reserveBytes reserves a growth of a tenant's flags, and for a free tenant also of all free tenants of its creator.
// Demo flags, which are small, count for the tenant alone. Facts must be appended before release. Errors are
// *commands.Error: Conflict beyond a limit, and the errors of Reserve.
func (w *Writer) reserveBytes(
	ctx context.Context, cmd any, tenantID string, limits TenantLimits, growth int,
) (release func(), err error) {
	if growth <= 0 {
		return func() {}, nil
	}
	leaveTenant, err := w.reserveGrowth(ctx, "bytes of the flags of "+tenantID, growth, limits.MaxFlagBytes,
		func() int { return w.quotas.Limits(tenantID).FlagBytes },
		fmt.Sprintf("the tenant's flags may take %d bytes on its plan, and would take more", limits.MaxFlagBytes))
	if _, demo := cmd.(commands.ResetDemoFlag); err != nil || demo || limits.Creator == "" {
		return leaveTenant, err
	}
	// the caller need not be a member of the others
	leaveCreator, err := w.reserveGrowth(ctx, "bytes of the flags of the free tenants of "+limits.Creator, growth,
		limits.MaxFreeBytes, func() int { return w.quotas.Limits(tenantID).FreeBytes },
		fmt.Sprintf("the flags of all free and sandbox tenants of this one's creator may take %d bytes together, and would "+
			"take more", limits.MaxFreeBytes))
	if err != nil {
		leaveTenant()
		return nil, err
	}
	return func() {
		leaveCreator()
		leaveTenant()
	}, nil
}

// reserveGrowth reserves bytes. Its margin is what the largest changes that a tenant may have under way can grow by, or
// more for a larger growth.
func (w *Writer) reserveGrowth(
	ctx context.Context, things string, growth, limit int, count func() int, tooLarge string,
) (release func(), err error) {
	used, release, err := w.reserve(ctx, things, reservation{
		limit: limit, margin: max(tenantCommands*commands.MaxFlagBytes, countMargin*growth), growth: growth, count: count,
	})
	if err != nil {
		return nil, err
	}
	if used+growth > limit {
		release()
		return nil, commands.Refuse(commands.Conflict, "%s", tooLarge)
	}
	return release, nil
}

// reservations holds what was reserved and is not released yet.
type reservations struct {
	mu     sync.Mutex
	things map[string]*reserved
}

type reserved struct {
	by      int
	changed chan struct{} // closed by the next release
}

// take reserves r, unless that and all that is reserved comes near the limit. n is the count with all that is reserved.
func (a *reservations) take(things string, r reservation) (n int, release func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.things[things]
	n = r.count()
	if g != nil {
		n += g.by
	}
	if n+r.growth > r.limit-r.margin {
		return n, nil, false
	}
	if g == nil {
		g = &reserved{changed: make(chan struct{})}
		a.things[things] = g
	}
	g.by += r.growth
	return n, sync.OnceFunc(func() { a.release(things, r.growth) }), true
}

func (a *reservations) release(things string, growth int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.things[things]
	close(g.changed)
	g.changed = make(chan struct{})
	if g.by -= growth; g.by == 0 {
		delete(a.things, things)
	}
}

// now returns what is reserved, and a channel that is closed when some of it is released.
func (a *reservations) now(things string) (by int, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.things[things]; g != nil {
		return g.by, g.changed
	}
	return 0, nil
}

// AwaitHead waits until the snapshot, and the read models that show facts of the names, hold all that has been
// appended.
func (w *Writer) AwaitHead(ctx context.Context, names []string) error {
	var retry storeRetry
	head, err := w.store.Head(ctx)
	for err != nil && retry.wait(ctx, err) {
		head, err = w.store.Head(ctx)
	}
	if err != nil {
		return unavailable(err)
	}
	if head != (events.Position{}) && !w.await(ctx, head, names) {
		return commands.Refuse(commands.Unavailable,
			"this node has not caught up with what others have changed: try again in a moment")
	}
	return nil
}
