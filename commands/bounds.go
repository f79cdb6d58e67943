package commands

import (
	"context"
	"fmt"
	"sync"

	"flagledger/events"
)

// countMargin is how far below a bound exact counting begins, or a tenth of the bound if that is less. A snapshot that
// lacks more would pass the bound.
const countMargin = 1000

// Admit counts in the snapshot of this node what a bound limits and other streams hold, such as the flags of a tenant,
// and those that were admitted and are not released. Far from the bound the caller is admitted too, until release. Near
// it one caller counts at a time, until release, once the snapshot holds all that was appended. So one node never
// passes the bound, each further node by one at most.
//
// Errors are *Error: TooMany for a caller that waited for 5 s, Unavailable where the snapshot is behind.
func (w *Writer) Admit(
	ctx context.Context, things string, bound int, count func() int,
) (n int, release func(), err error) {
	return w.admitUpTo(ctx, things, limit{bound: bound, margin: min(countMargin, bound/10), growth: 1}, nil, count)
}

// limit is a bound, the margin below it where exact counting begins, and by how much the caller makes it grow.
type limit struct{ bound, margin, growth int }

// admitUpTo is Admit with a limit. Where names are given, what shows facts of those names has to hold all too, as the
// count is of a read model.
func (w *Writer) admitUpTo(
	ctx context.Context, things string, l limit, names []string, count func() int,
) (n int, release func(), err error) {
	if l.margin < l.bound {
		fits := func(admitted int) (int, bool) {
			n := count() + admitted
			return n, n+l.growth <= l.bound-l.margin
		}
		if n, release, ok := w.admitted.add(things, l.growth, fits); ok {
			return n, release, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	release, err = w.counting.enter(ctx, things)
	if err != nil {
		return 0, nil, countedInVain(l.bound)
	}
	for {
		// What is released meanwhile is appended, and so in the count.
		admitted, changed := w.admitted.now(things)
		if err := w.awaitHead(ctx, names); err != nil {
			release()
			return 0, nil, err
		}
		n := count()
		if admitted == 0 || n+admitted+l.growth <= l.bound {
			return n + admitted, release, nil
		}
		select { // some of those that are admitted may be in the count as well
		case <-changed:
		case <-ctx.Done():
			release()
			return 0, nil, countedInVain(l.bound)
		}
	}
}

func countedInVain(bound int) error {
	return errBusy(1,
		fmt.Sprintf("others are made at the same time, one after another so near the bound of %d", bound))
}

// admitted is by how much things grow by those that were admitted and are not released. It remembers only things of
// which there are some.
type admitted struct {
	mu     sync.Mutex
	things map[string]*growing
}

type growing struct {
	by      int
	changed chan struct{} // closed when one of them is released
}

// add admits a growth of things if fits, which gets what is admitted, says so. n is what fits has returned.
func (a *admitted) add(
	things string, growth int, fits func(admitted int) (n int, ok bool),
) (n int, release func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.things[things]
	by := 0
	if g != nil {
		by = g.by
	}
	if n, ok = fits(by); !ok {
		return n, nil, false
	}
	if g == nil {
		g = &growing{changed: make(chan struct{})}
		a.things[things] = g
	}
	g.by += growth
	return n, sync.OnceFunc(func() { a.release(things, growth) }), true
}

func (a *admitted) release(things string, growth int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.things[things]
	close(g.changed)
	g.changed = make(chan struct{})
	if g.by -= growth; g.by == 0 {
		delete(a.things, things)
	}
}

// now is what is admitted of things, and a channel that is closed when some of that is released.
func (a *admitted) now(things string) (by int, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.things[things]; g != nil {
		return g.by, g.changed
	}
	return 0, nil
}

// awaitHead waits until the snapshot, and the read models that show facts of the names, hold all that has been
// appended.
func (w *Writer) awaitHead(ctx context.Context, names []string) error {
	var retry storeRetry
	head, err := w.store.Head(ctx)
	for err != nil && retry.wait(ctx, err) {
		head, err = w.store.Head(ctx)
	}
	if err != nil {
		return unavailable(err)
	}
	if head != (events.Position{}) && !w.await(ctx, head, names) {
		return refuse(Unavailable, "this node has not caught up with what others have changed: try again in a moment")
	}
	return nil
}
