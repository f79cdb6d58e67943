// Package models holds the read models of the service: what tables each has, and what it makes of facts.
package models

import (
	"fmt"
	"slices"
	"strings"

	"flagledger/events"
	"flagledger/projections"
)

// byStream lists the read models by the kind of stream that each of them follows; audit follows all.
var byStream = events.NewByStream(
	[]projections.Projection{flags},
	[]projections.Projection{projects},
	[]projections.Projection{tenants, oauthClients},
	[]projections.Projection{users},
	[]projections.Projection{invitations},
)

// All lists the read models of the service.
func All() []projections.Projection {
	return append(slices.Concat(byStream.Values()...), audit)
}

// Audit is the audit trail.
func Audit() projections.Projection { return audit }

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
