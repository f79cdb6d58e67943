package main

import (
	"fmt"

	"flagledger/events"
)

// tenantFilter selects the facts of a tenant, given in log order; all facts if there is no tenant.
type tenantFilter struct {
	tenantID string
	streams  map[string]bool // of the tenant whose first fact was given
}

// belongs reports whether a fact is the tenant's. It returns an error for a stream whose first fact, which this program
// cannot read, names the tenant.
func (t tenantFilter) belongs(e events.Recorded) (bool, error) {
	if t.tenantID == "" {
		return true, nil
	}
	tenantID, known := events.TenantOf(e)
	switch {
	case !known && e.Revision == 1 && e.Err != nil:
		return false, fmt.Errorf("the tenant of %s is not known: %w", e.Stream, e.Err)
	case !known:
		return t.streams[e.Stream], nil
	case tenantID != t.tenantID:
		return false, nil
	}
	if e.Revision == 1 {
		t.streams[e.Stream] = true
	}
	return true, nil
}
