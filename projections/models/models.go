// Package models defines the read models of the service: their tables, and how facts change them.
package models

import (
	"fmt"
	"slices"
	"strings"

	"flagledger/events"
	"flagledger/projections"
)

// byStream lists the read models by kind of stream; audit follows all streams.
var byStream = events.NewByStream(
	[]projections.Projection{flags},
	[]projections.Projection{projects},
	[]projections.Projection{tenants, oauthClients, evaluationKeys},
	[]projections.Projection{users},
	[]projections.Projection{invitations},
	nil, // the snapshot answers for segments, and the audit trail has their history
)

// All returns the read models of the service.
func All() []projections.Projection {
	return append(slices.Concat(byStream.Values()...), audit)
}

// Audit returns the audit trail's read model.
func Audit() projections.Projection { return audit }

// ByName returns read models by name. The error names an unknown one and lists the known ones.
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
			return nil, fmt.Errorf("unknown projection %q; known: %s", name, strings.Join(known, ", "))
		}
	}
	return found, nil
}
