package http

import (
	"net/http"
	"slices"

	"flagledger/events"
)

// canonicalIDPtr is events.CanonicalID for an id that may be missing.
func canonicalIDPtr(id *string) *string {
	if id == nil {
		return nil
	}
	return new(events.CanonicalID(*id))
}

// personID is events.CanonicalID for the id of a person. Firebase also takes ids that a project has chosen, in any
// spelling: a known one stays as it is.
func (a *API) personID(id string) string {
	if a.Live.Registered(id) {
		return id
	}
	return events.CanonicalID(id)
}

// idParameters are the parameters of paths that are ids. Keys of flags and of tours are not.
var idParameters = []string{"tenantId", "projectId", "variationId", "invitationId", "clientId", "id"}

// canonicalPath writes the ids among the parameters of a call's path as the service does.
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
