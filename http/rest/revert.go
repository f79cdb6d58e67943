package rest

import (
	"time"

	"flagledger/events"
	"flagledger/queries"
)

// RevertBody names the moment to revert to.
type RevertBody struct {
	Version *int64  `json:"version,omitempty" minimum:"1" doc:"A version" example:"3"`
	At      *string `json:"at,omitempty" format:"date-time" doc:"A time that is past by the store's clock. Send either version or at"`
}

// Moment reads the moment to revert to. Its error is a problem.
func (b RevertBody) Moment(now time.Time) (m queries.Moment, err error) {
	wrong := map[string]string{}
	switch {
	case b.Version != nil && b.At != nil:
		wrong["at"] = "is not allowed with version: send one of them"
	case b.Version != nil && *b.Version < 1:
		wrong["version"] = "must be a whole number of at least 1"
	case b.Version != nil:
		m.Version = events.Revision(*b.Version)
	case b.At == nil:
		wrong["version"] = "is required, or at in its place"
	default:
		m.At, wrong = ParseAt(*b.At, now)
	}
	if len(wrong) > 0 {
		return m, Invalid(wrong)
	}
	return m, nil
}
