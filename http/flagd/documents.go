package flagd

import (
	"bytes"
	"context"
	"iter"
	"math"
	"sync"

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

// documents are those that streams are open for.
type documents struct {
	mu    sync.Mutex
	by    map[documentKey]*document
	bytes map[string]int // of the messages, by the owner of their quota
}

// document is made once for all streams that send it.
type document struct {
	key   documentKey
	owner string // of the quota
	users int    // streams; guarded by documents.mu, as is bytes
	bytes int

	mu       sync.Mutex
	position events.Position // it holds all changes up to here
	made     *madeDocument   // nil before the first
}

type madeDocument struct {
	message
	flags []*usage.Flag // that it defines
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
		d.count(one, 0)
	}
}

// reserve sets the size of a document's message. It returns false if the owner has no room for it.
func (d *documents) reserve(one *document, size int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bytes[one.owner]-one.bytes+size > maxCached {
		return false
	}
	d.count(one, size)
	return true
}

func (d *documents) count(one *document, size int) {
	d.bytes[one.owner] += size - one.bytes
	one.bytes = size
	if d.bytes[one.owner] == 0 {
		delete(d.bytes, one.owner)
	}
}

// current returns a message with at least all changes up to need. Its error is a gRPC status.
func (a *API) current(
	ctx context.Context, d *document, p *rest.Principal, need events.Position,
) (*madeDocument, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	listener := a.changes.Listen(p.Tenant, p.Environment.ID, math.MaxInt)
	position := listener.Next().Position // the flags hold all changes up to it
	listener.Close()
	// one that is ahead of the flags is of another log
	if d.made != nil && d.position.Compare(need) >= 0 && d.position.Compare(position) <= 0 {
		return d.made, nil
	}
	slot, err := a.EnterQueue(ctx, a.Queues.CPU, p)
	if err != nil {
		return nil, statusOf(err)
	}
	defer slot.Leave()
	text, keys, err := d.key.Document(flagsOf(p.Tenant), d.key.dialect)
	if err != nil {
		return nil, statusOf(err)
	}
	made := &madeDocument{}
	if made.message, err = encode(text); err != nil {
		return nil, statusOf(err)
	}
	if d.made != nil && bytes.Equal(d.made.message, made.message) { // nothing has changed for streams
		d.position = position
		return d.made, nil
	}
	for _, key := range keys {
		if flag, ok := p.Tenant.Flag(key); ok {
			made.flags = append(made.flags, flag.Usage())
		}
	}
	if len(made.message) > maxMessage {
		return nil, errTooLarge
	}
	if !a.documents.reserve(d, len(made.message)) {
		return nil, errTooManySets
	}
	d.made, d.position = made, position
	return made, nil
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
