// Package segments serves segments: their rules, members and users, history and earlier states.
package segments

import (
	"context"

	"flagledger/commands"
	"flagledger/commands/keep/salts"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

// API serves segments.
type API struct {
	*rest.Core
	Salts *salts.Salts // of private segments
}

// New returns the operations of a core.
func New(core *rest.Core, salts *salts.Salts) *API { return &API{core, salts} }

const (
	tag  = "Segments"
	path = "/api/v1/segments/{segmentKey}"
)

var (
	reading  = rest.Access{Who: rest.Viewer, Scope: events.FlagsRead}
	changing = rest.Access{Who: rest.Developer, Scope: events.FlagsWrite}
)

// AddOperations adds the operations to the OpenAPI document and its router.
func (a *API) AddOperations() {
	a.addSegments()
	a.addRules()
	a.addMembers()
	a.addUsers()
	a.addHistory()
	a.addVersions()
	a.addRevert()
	a.addForget()
}

// SegmentPath names a segment.
type SegmentPath struct {
	rest.TenantInput
	Key string `path:"segmentKey" doc:"The segment's key" example:"beta"`
}

// SegmentChange holds the parameters of every change to a segment.
type SegmentChange struct {
	SegmentPath
	rest.ChangeInput
	IfMatch string `header:"If-Match" pattern:"^(\\*|(W/)?\"[^\"]*\"( *, *(W/)?\"[^\"]*\")*)$" patternDescription:"* or entity tags in double quotes, such as \"5\"" doc:"The version that the segment must have, as its ETag; 412 if it has another" example:"\"5\""`
}

func (c SegmentChange) ref(ctx context.Context) commands.SegmentRef {
	return commands.SegmentRef{
		TenantID: rest.PrincipalOf(ctx).Tenant.ID(), Key: c.Key, IfVersions: rest.IfMatch(c.IfMatch),
	}
}

// SegmentRead names a segment and a moment.
type SegmentRead struct {
	SegmentPath
	At      string `query:"at" format:"date-time" doc:"An RFC 3339 time that is past by the store's clock: the response shows the state at that time, by the recorded times of changes"`
	Version int64  `query:"version" minimum:"1" doc:"A version of the segment: the response shows the state when the segment got it"`
}

// historyText describes the reads that support historical state.
const historyText = "With `at` or `version` the response has the current format and the historical values, without " +
	"`ETag`. It includes segments that were deleted since. It is 404 if the segment did not exist at that time."

// read returns the segment at the moment of the call, and whether the call names one.
func (in SegmentRead) read(ctx context.Context, a *API) (s *state.Segment, past bool, err error) {
	tenant := rest.PrincipalOf(ctx).Tenant
	m, past, err := rest.MomentFromURL(rest.RequestOf(ctx).URL, a.Now())
	switch {
	case err != nil:
		return nil, past, err
	case past:
		s, err = a.segmentAt(ctx, in.Key, m)
		return s, true, err
	}
	live, ok := tenant.Segments().Find(in.Key)
	if !ok {
		return nil, false, queries.ErrNotFound
	}
	return live.State(), false, nil
}

// segmentAt reads the historical state of a segment in a slot.
func (a *API) segmentAt(ctx context.Context, key string, m queries.Moment) (*state.Segment, error) {
	if err := a.Queries.WaitUntilCurrent(ctx, m.At, "segment."); err != nil {
		return nil, err
	}
	slot, err := a.EnterPast(ctx)
	if err != nil {
		return nil, err
	}
	defer slot.Leave()
	return a.Queries.SegmentAt(ctx, rest.PrincipalOf(ctx).Tenant, key, m)
}
