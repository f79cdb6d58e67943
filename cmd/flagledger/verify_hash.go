package main

import (
	"iter"
	"runtime"

	"golang.org/x/mod/sumdb/tlog"

	"flagledger/events"
)

// hashedFact is a fact with its leaf hash.
type hashedFact struct {
	events.Recorded
	leaf tlog.Hash
	err  error // why it has no hash, or is not stored as a fact
}

// Limits of the facts that one core hashes at once.
const (
	hashFacts = 200
	hashBytes = 1 << 20
)

type hashBatch struct {
	facts []hashedFact
	err   error // the error of all, after these facts
	done  chan struct{}
}

// hashAll yields facts with their hashes in order. It reads ahead, and hashes on all cores.
func hashAll(all iter.Seq2[events.Recorded, error]) iter.Seq2[hashedFact, error] {
	return func(yield func(hashedFact, error) bool) {
		stop := make(chan struct{})
		batches := make(chan *hashBatch, runtime.GOMAXPROCS(0))
		go func() {
			defer close(batches)
			batch, size := &hashBatch{done: make(chan struct{})}, 0
			send := func() bool {
				select {
				case batches <- batch:
				case <-stop:
					return false
				}
				go batch.hash()
				batch, size = &hashBatch{done: make(chan struct{})}, 0
				return true
			}
			for e, err := range all {
				if err != nil {
					batch.err = err
					break
				}
				batch.facts = append(batch.facts, hashedFact{Recorded: e})
				if size += len(e.Stored.Data); len(batch.facts) == hashFacts || size >= hashBytes {
					if !send() {
						return
					}
				}
			}
			send()
		}()
		defer func() {
			close(stop)
			for range batches { // until reading ends
			}
		}()
		for batch := range batches {
			<-batch.done
			for _, e := range batch.facts {
				if !yield(e, nil) {
					return
				}
			}
			if batch.err != nil {
				yield(hashedFact{}, batch.err)
				return
			}
		}
	}
}

func (h *hashBatch) hash() {
	defer close(h.done)
	for i := range h.facts {
		e := &h.facts[i]
		if e.leaf, e.err = events.LeafHash(e.Recorded); e.err == nil {
			e.err = events.CheckMetadata(e.Recorded)
		}
	}
}
