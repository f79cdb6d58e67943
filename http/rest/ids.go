package rest

import (
	"net/http"
	"slices"

	"flagledger/events"
)

// canonicalIDPtr returns the canonical form of an id, or nil for nil.
func canonicalIDPtr(id *string) *string {
	if id == nil {
		return nil
	}
	return new(events.CanonicalID(*id))
}

// PersonID returns the canonical form of a person's id. Firebase allows custom ids in any spelling, so a known id is
// returned unchanged.
func (a *Core) PersonID(id string) string {
	if a.Live.Registered(id) {
		return id
	}
	return events.CanonicalID(id)
}

// idParameters lists the path parameters that are ids. Keys of flags and of tours are not.
var idParameters = []string{"tenantId", "projectId", "variationId", "invitationId", "clientId", "keyId", "id"}

// canonicalPath replaces the ids in a call's path parameters with their canonical form.
func (a *Core) canonicalPath(r *http.Request, parameters []string) {
	for _, name := range parameters {
		switch {
		case name == "userId":
			r.SetPathValue(name, a.PersonID(r.PathValue(name)))
		case slices.Contains(idParameters, name):
			r.SetPathValue(name, events.CanonicalID(r.PathValue(name)))
		}
	}
}

// TenantPath names a tenant.
type TenantPath struct {
	TenantInput
	ID string `path:"tenantId" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
}
