package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"

	"flagledger/events"
	"flagledger/events/export"
)

// allEvents yields all events that a store holds now after a position.
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

// tenantFilter tells the facts of a tenant from others, which it must be given in the order of the log; all facts where there is no tenant.
type tenantFilter struct {
	tenantID string
	projects map[string]bool // its streams of projects, also of those that are deleted
}

// observe notes a project that the tenant makes, and reports whether a fact is the tenant's. The error is for a project of which this program cannot read whose it is.
func (t tenantFilter) observe(e events.Recorded) (bool, error) {
	if t.tenantID == "" {
		return true, nil
	}
	if observe, _ := observers.Of(e.Stream); observe != nil {
		return observe(t, e)
	}
	return false, nil
}

// observers are observe for the kinds of streams that are of a tenant.
var observers = events.EachStream(tenantFilter.observeFlag, tenantFilter.observeProject, tenantFilter.observeTenant, nil, nil)

func (t tenantFilter) observeFlag(e events.Recorded) (bool, error) {
	return strings.HasPrefix(e.Stream, events.FlagStream(t.tenantID, "")), nil
}

func (t tenantFilter) observeTenant(e events.Recorded) (bool, error) {
	return e.Stream == events.TenantStream(t.tenantID), nil
}

func (t tenantFilter) observeProject(e events.Recorded) (bool, error) {
	if e.Revision == 1 {
		if e.Err != nil {
			return false, fmt.Errorf("the tenant of %s is not known: %w", e.Stream, e.Err)
		}
		if created, ok := e.Fact.(events.ProjectCreated); ok && created.TenantID == t.tenantID {
			t.projects[e.Stream] = true
		}
	}
	return t.projects[e.Stream], nil
}
