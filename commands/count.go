package commands

import (
	"context"
	"fmt"

	"flagledger/events"
)

// countMargin is how far below a bound exact counting begins, or a tenth of the bound if that is less. A snapshot that lacks more would pass the bound.
const countMargin = 1000

// Count counts in the snapshot of this node what a bound limits and other streams hold, such as the flags of a tenant. Near the bound one caller counts at a
// time, until release, once the snapshot holds all that was appended. So one node never passes the bound, each further node by one at most.
//
// Errors are *Error: TooMany for a caller that waited for 5 s, Unavailable where the snapshot is behind.
func (w *Writer) Count(ctx context.Context, things string, bound int, count func() int) (n int, release func(), err error) {
	return w.countUpTo(ctx, things, bound, min(countMargin, bound/10), nil, count)
}

// countUpTo is Count with the margin below the bound where exact counting begins. Where names are given, what shows facts of those names has to hold all too, as the
// count is of a read model.
func (w *Writer) countUpTo(ctx context.Context, things string, bound, margin int, names []string, count func() int) (n int, release func(), err error) {
	if n = count(); n < bound-margin {
		return n, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	release, err = w.counts.enter(ctx, things)
	if err != nil {
		return n, nil, waitedInVain(1, fmt.Sprintf("others are made at the same time, one after another so near the bound of %d", bound))
	}
	if err := w.awaitHead(ctx, names); err != nil {
		release()
		return n, nil, err
	}
	return count(), release, nil
}

// awaitHead waits until the snapshot, and the read models that show facts of the names, hold all that has been appended.
func (w *Writer) awaitHead(ctx context.Context, names []string) error {
	var retry retry
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
