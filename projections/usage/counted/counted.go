// Package counted is what a node has counted of the use of flags, between who counts it in memory and who writes it
// down.
package counted

import "time"

const (
	// MaxOutcomes is how many outcomes of a flag are told apart, in an environment and hour or in a day.
	MaxOutcomes = 20
	// RestOutcome stands in the database for all outcomes beyond them.
	RestOutcome = "rest"
	// DaysOfHours is for how many days before today hours are kept.
	DaysOfHours = 30
)

// Use is how often a flag, or all of a tenant, was used in an environment in an hour: all that was counted in it until
// now.
type Use struct {
	TenantID      string
	FlagKey       string // empty for all flags of the tenant
	Life          uint64 // the revision of the FlagCreated that the flag began with
	EnvironmentID string // empty where environments are not told apart
	Hour          time.Time

	Evaluated, Prefetched time.Time // when last; the zero time before the first
	Prefetches            uint64    // of a tenant, the calls
	Served                []Served
	Callers               []Caller // one for each; the node's bound is beyond a tenant's 100 clients

	Source Source
}

// Source is where a use was counted.
type Source interface {
	// Retry has TakeUses yield the use again, with all its outcomes as New. It is called where the use could not be
	// written.
	Retry()
}

// Served is how often an outcome was served for a reason. It is a variation, or without one a value, or the rest: all
// beyond the first MaxOutcomes. For all flags of a tenant it has none of them.
type Served struct {
	VariationID, VariationName string
	Value                      []byte
	Rest                       bool
	Reason                     string
	Count                      uint64
	New                        bool // the outcome was not told of before
}

// Caller is how often a client, or people, made evaluations.
type Caller struct {
	ClientID string // empty for people
	Count    uint64
	Seen     time.Time // the last
}
