package main

import (
	"context"
	"iter"
	"os"

	"flagledger/events"
	"flagledger/events/export"
)

// allEvents yields the current events of a store after a position.
func allEvents(ctx context.Context, store events.Store, after events.Position) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for page, err := range store.Subscribe(ctx, after) {
			if err != nil {
				yield(events.Recorded{}, err)
				return
			}
			for _, e := range page.Events {
				if !yield(e, nil) {
					return
				}
			}
			if page.Live {
				return
			}
		}
	}
}

// readFacts opens a file of facts to be read.
func readFacts(path string, read func(*export.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	r, err := export.NewReader(file)
	if err != nil {
		return err
	}
	return read(r)
}
