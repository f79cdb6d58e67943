package flagd

import (
	"context"
	"iter"
	"math"
	"sync"

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
	mu sync.Mutex
	by map[documentKey]*document
}

// document is made once for all streams that send it.
type document struct {
	key   documentKey
	users int // streams; guarded by documents.mu

	mu       sync.Mutex
	position events.Position // it holds all changes up to here
	made     *madeDocument   // nil before the first
}

type madeDocument struct {
	message
	flags []*usage.Flag // that it defines
}

// open returns a document, which the caller closes.
func (d *documents) open(key documentKey) *document {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.by[key]
	if one == nil {
		one = &document{key: key}
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
	}
}

// current returns the message with all changes up to a position. Its error is a problem.
func (a *API) current(ctx context.Context, d *document, p *rest.Principal, need events.Position) (*madeDocument, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made != nil && d.position.Compare(need) >= 0 {
		return d.made, nil
	}
	slot, err := a.EnterQueue(ctx, a.Queues.CPU, p)
	if err != nil {
		return nil, err
	}
	defer slot.Leave()
	listener := a.changes.Listen(p.Tenant, p.Environment.ID, math.MaxInt)
	position := listener.Next().Position // the flags hold all changes up to it
	listener.Close()
	made := &madeDocument{}
	text, keys, err := d.key.Document(flagsOf(p.Tenant), d.key.dialect)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if flag, ok := p.Tenant.Flag(key); ok {
			made.flags = append(made.flags, flag.Usage())
		}
	}
	if made.message, err = encode(text); err != nil {
		return nil, err
	}
	if d.made != nil && string(d.made.message) == string(made.message) {
		made.message = d.made.message // streams see that nothing has changed for them
	}
	d.made, d.position = made, position
	return made, nil
}

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
