package state

import (
	"time"

	"flagledger/events"
)

// Environment is an environment of a tenant, and when it was added.
type Environment struct {
	events.EnvironmentRef
	AddedAt time.Time // as recorded
}
