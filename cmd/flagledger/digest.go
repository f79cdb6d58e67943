package main

import (
	"context"
	"crypto/sha256"

	"flagledger/events"
)

// digest is a hash of all events of a stream: of their canonical bytes, in order.
type digest struct {
	events int
	sum    [sha256.Size]byte
}

func (d digest) with(e events.Recorded) (digest, error) {
	b, err := events.Canonical(e)
	if err != nil {
		return digest{}, err
	}
	return digest{d.events + 1, sha256.Sum256(append(d.sum[:], b...))}, nil
}

// digests returns a digest of each stream of a store. It calls visit with each event.
func digests(ctx context.Context, store events.Store, visit func(events.Recorded)) (map[string]digest, error) {
	all := map[string]digest{}
	for e, err := range allEvents(ctx, store, events.Position{}) {
		if err != nil {
			return nil, err
		}
		if all[e.Stream], err = all[e.Stream].with(e); err != nil {
			return nil, err
		}
		visit(e)
	}
	return all, nil
}
