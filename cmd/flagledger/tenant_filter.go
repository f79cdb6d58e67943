package main

import (
	"fmt"

	"flagledger/events"
)

// tenantFilter selects the facts of a tenant, given in log order; all facts if there is no tenant.
type tenantFilter struct {
	tenantID string
	projects map[string]bool // streams of its projects, also deleted ones
}

// belongs records a project that the tenant creates, and reports whether a fact is the tenant's. It returns an error
// for a project whose tenant this program cannot read.
func (t tenantFilter) belongs(e events.Recorded) (bool, error) {
	if t.tenantID == "" {
		return true, nil
	}
	if belongs, _ := filters.Lookup(e.Stream); belongs != nil {
		return belongs(t, e)
	}
	return false, nil
}

// filters implement belongs for each kind of stream of a tenant.
var filters = events.NewByStream(tenantFilter.flagBelongs, tenantFilter.projectBelongs, tenantFilter.tenantBelongs, nil,
	nil)

func (t tenantFilter) flagBelongs(e events.Recorded) (bool, error) {
	tenantID, _ := events.ParseFlagStream(e.Stream)
	return tenantID == t.tenantID, nil
}

func (t tenantFilter) tenantBelongs(e events.Recorded) (bool, error) {
	return e.Stream == events.TenantStream(t.tenantID), nil
}

func (t tenantFilter) projectBelongs(e events.Recorded) (bool, error) {
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
