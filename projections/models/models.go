// Package models holds the read models of the service: what tables each has, and what it makes of facts.
package models

import (
	"fmt"
	"strings"

	"flagledger/projections"
)

// All lists the read models of the service.
func All() []projections.Projection {
	return []projections.Projection{flags, history, oauthClients, projects, tenants, users, invitations}
}

// ByName finds read models by their names. The error names one that does not exist, and those that do.
func ByName(names []string) ([]projections.Projection, error) {
	var found []projections.Projection
	for _, name := range names {
		before := len(found)
		var known []string
		for _, p := range All() {
			known = append(known, p.Name)
			if p.Name == name {
				found = append(found, p)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("no projection is named %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return found, nil
}
