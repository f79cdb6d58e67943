package http

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

// personID returns the canonical form of a person's id. Firebase allows custom ids in any spelling, so a known id is
// returned unchanged.
func (a *API) personID(id string) string {
	if a.Live.Registered(id) {
		return id
	}
	return events.CanonicalID(id)
}

// idParameters lists the path parameters that are ids. Keys of flags and of tours are not.
var idParameters = []string{"tenantId", "projectId", "variationId", "invitationId", "clientId", "id"}

// canonicalPath replaces the ids in a call's path parameters with their canonical form.
func (a *API) canonicalPath(r *http.Request, parameters []string) {
	for _, name := range parameters {
		switch {
		case name == "userId":
			r.SetPathValue(name, a.personID(r.PathValue(name)))
		case slices.Contains(idParameters, name):
			r.SetPathValue(name, events.CanonicalID(r.PathValue(name)))
		}
	}
}
