package flagd

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"math"
	"sync"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
	definitions "flagledger/projections/snapshot/flagd"
	"flagledger/projections/usage"
)

// documentKey is what a document depends on, beside the flags.
type documentKey struct {
	definitions.Set
	dialect definitions.Dialect
}

// documents are those that streams are open for. mu guards their users, position and made, too.
type documents struct {
	mu    sync.Mutex
	by    map[documentKey]*document
	bytes map[string]int // of all messages with users, by the owner of their quota
}

// document is made once for all streams that send it.
type document struct {
	key   documentKey
	owner string // of the quota

	making   singleflight.Group
	users    int             // streams
	position events.Position // it holds all changes up to here
	made     *madeDocument   // nil before the first
}

type madeDocument struct {
	message
	flags []*usage.Flag // that it defines
	owner string        // of the quota
	// users are the document while this is its newest, and streams until they send another. documents.mu guards it.
	users int
}

// open returns a document, which the caller closes.
func (d *documents) open(key documentKey, owner string) *document {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.by[key]
	if one == nil {
		one = &document{key: key, owner: owner}
		d.by[key] = one
	}
	one.users++
	return one
}

func (d *documents) close(one *document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(d.by, one.key)
		d.drop(one.made)
	}
}

// use returns the newest message of a document if it has all changes up to need, else nil. The caller releases it. One
// that is ahead of the flags is of another log.
func (d *documents) use(one *document, need, flags events.Position) *madeDocument {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one.made == nil || one.position.Compare(need) < 0 || one.position.Compare(flags) > 0 {
		return nil
	}
	one.made.users++
	return one.made
}

// release ends a use of a message, which may be nil.
func (d *documents) release(made *madeDocument) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(made)
}

// drop is release with mu held.
func (d *documents) drop(made *madeDocument) {
	if made == nil {
		return
	}
	if made.users--; made.users > 0 {
		return
	}
	if d.bytes[made.owner] -= len(made.message); d.bytes[made.owner] == 0 {
		delete(d.bytes, made.owner)
	}
}

// add makes a message the newest of a document, unless it equals the newest or no stream is open for it any more. It
// returns false if the owner has no room for it: streams that read slowly use old messages, too.
func (d *documents) add(one *document, made *madeDocument, position events.Position) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case one.users == 0:
	case one.made != nil && bytes.Equal(one.made.message, made.message):
		one.position = position
	case d.bytes[one.owner]+len(made.message) > maxCached:
		return false
	default:
		d.bytes[one.owner] += len(made.message)
		made.owner, made.users = one.owner, 1
		d.drop(one.made)
		one.made, one.position = made, position
	}
	return true
}

// current returns a message with at least all changes up to need. The caller releases it. Its error is a gRPC status.
func (a *API) current(
	ctx context.Context, d *document, p *rest.Principal, need events.Position,
) (*madeDocument, error) {
	for attempt := 0; ; attempt++ {
		if attempt == 2 { // the second has begun after the call, and so has all changes
			need = events.Position{}
		}
		if made := a.documents.use(d, need, a.positionOf(p)); made != nil {
			return made, nil
		}
		making := d.making.DoChan("", func() (_ any, err error) {
			defer recoverPanic(a.Log, &err)
			return nil, a.build(context.WithoutCancel(ctx), d, p) // also for others that wait
		})
		select {
		case done := <-making:
			if done.Err != nil {
				return nil, done.Err
			}
		case <-a.ending:
			return nil, errStopping
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// positionOf returns a position up to which the flags of the caller's tenant hold all changes.
func (a *API) positionOf(p *rest.Principal) events.Position {
	listener := a.changes.Listen(p.Tenant, p.Environment.ID, math.MaxInt)
	defer listener.Close()
	return listener.Next().Position
}

// build makes a document's newest message. Its error is a gRPC status.
func (a *API) build(ctx context.Context, d *document, p *rest.Principal) error {
	slot, err := a.EnterQueue(ctx, a.Queues.CPU, p)
	if err != nil {
		return statusOf(err)
	}
	defer slot.Leave()
	position := a.positionOf(p)
	flags := func(yield func(string, *state.Flag) bool) {
		for key, flag := range flagsOf(p.Tenant) {
			if err = slot.Pace(ctx); err != nil || !yield(key, flag) {
				return
			}
		}
	}
	text, keys, documentErr := d.key.Document(flags, d.key.dialect)
	if err = cmp.Or(err, documentErr); err != nil {
		return statusOf(err)
	}
	made := &madeDocument{}
	if made.message, err = encode(text); err != nil {
		return statusOf(err)
	}
	if len(made.message) > maxMessage {
		return errTooLarge
	}
	for _, key := range keys {
		if flag, ok := p.Tenant.Flag(key); ok {
			made.flags = append(made.flags, flag.Usage())
		}
	}
	if !a.documents.add(d, made, position) {
		return errTooManySets
	}
	return nil
}

var (
	errTooLarge = status.Errorf(codes.FailedPrecondition,
		"the flags take more than %s: select fewer by flagd-selector, with project= or tag=", events.SizeText(maxMessage))
	errTooManySets = status.Errorf(codes.ResourceExhausted,
		"the sets of flags that streams are open for take more than %s: select fewer different ones",
		events.SizeText(maxCached))
)

// flagsOf yields the flags of a tenant, sorted by key.
func flagsOf(t *snapshot.Tenant) iter.Seq2[string, *state.Flag] {
	return func(yield func(string, *state.Flag) bool) {
		for _, key := range t.FlagKeys() {
			if flag, ok := t.Flag(key); ok && !yield(key, flag.State()) {
				return
			}
		}
	}
}
