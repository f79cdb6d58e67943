// Package projections builds the read models: tables in Postgres that follow the log and can be dropped and rebuilt at any time.
package projections

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// Projection turns facts into the rows of one read model. Applying the same log gives the same rows, always: rows hold nothing but what
// events say.
type Projection struct {
	Name string
	// version is part of what the read model is: a change of its tables or of what it makes of facts needs the next one, and the service then
	// rebuilds it by itself.
	version int
	tables  []string
	// schema creates the tables. They are named without their schema, here and in apply: it is the connection's search_path.
	schema string
	// factPrefixes are what the names of the facts that it follows begin with.
	factPrefixes []string
	apply        func(b *pgx.Batch, e events.Recorded) error
}

// All lists the read models of the service.
func All() []Projection {
	return []Projection{flags, history, oauthClients, projects, tenants, users, invitations}
}

// ByName finds read models by their names. The error names one that does not exist, and those that do.
func ByName(names []string) ([]Projection, error) {
	var found []Projection
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

func (p Projection) follows(name string) bool {
	return slices.ContainsFunc(p.factPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
