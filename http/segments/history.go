package segments

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

type segmentHistoryEntry struct {
	ID        string            `json:"id" example:"0198c5a1-9c51-7f3d-8b26-5e7d9f1a3b42"`
	Action    string            `json:"action" enum:"created,updated,rules_changed,members_added,members_removed,forgotten,deleted,reverted"`
	Changes   rest.Value        `json:"changes" doc:"Each changed field with from and to. Rules are rules.<id>, as a whole, null if absent; members that were added or removed are included or excluded, of a private segment their number" example:"{\"included\":{\"from\":null,\"to\":[\"user-42\"]}}"`
	UserID    string            `json:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	UserName  string            `json:"userName" doc:"The display name, or else the address, or else the userId; \"erased user\" if the person was erased" example:"Ada"`
	Timestamp rest.RecordedTime `json:"timestamp"`
	Version   int64             `json:"version" doc:"The number of the event in the segment's stream" example:"7"`
	ActorType string            `json:"actorType" enum:"user,client,system"`
	RequestID string            `json:"requestId" example:"0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b"`
	Reason    string            `json:"reason" doc:"From X-Change-Reason" example:"launch day"`
}

func showEntry(e queries.HistoryEntry) segmentHistoryEntry {
	return segmentHistoryEntry{
		ID:        e.ID,
		Action:    e.Action,
		Changes:   rest.Value(e.Changes),
		UserID:    e.ActorID,
		UserName:  rest.ActorName(e.Actor),
		Timestamp: rest.RecordedTime(e.Timestamp),
		Version:   e.Version,
		ActorType: e.ActorKind,
		RequestID: e.RequestID,
		Reason:    e.Reason,
	}
}

func (a *API) addHistory() {
	history := rest.Operation("GET", path+"/history", "get-segment-history", tag,
		"All events of a segment's key, newest first")
	rest.Register(a.Core, reading, history, func(ctx context.Context, in *struct {
		SegmentPath
		rest.PageInput
		rest.PeriodInput
		Action string `query:"action" enum:"created,updated,rules_changed,members_added,members_removed,forgotten,deleted,reverted"`
		UserID string `query:"userId"`
	}) (*rest.ListOutput[segmentHistoryEntry], error) {
		filter := queries.HistoryFilter{Action: in.Action, UserID: a.PersonID(in.UserID), From: in.From, To: in.To}
		list, err := a.Queries.History(ctx, rest.PrincipalOf(ctx).Tenant.ID(), "segment", in.Key, filter, in.Page())
		return rest.ListResponse(ctx, in.PageInput, list, err, showEntry)
	})
}

type segmentVersionEntry struct {
	Version   int64             `json:"version" example:"7"`
	Timestamp rest.RecordedTime `json:"timestamp" doc:"When the store recorded it. Sent as at, it includes the version"`
	Action    string            `json:"action" doc:"As in the history" example:"members_added"`
	UserID    string            `json:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	UserName  string            `json:"userName" example:"Ada"`
	Reason    string            `json:"reason" doc:"From X-Change-Reason" example:"launch day"`
}

func showVersionEntry(e queries.HistoryEntry) segmentVersionEntry {
	return segmentVersionEntry{
		e.Version, rest.RecordedTime(e.Timestamp), e.Action, e.ActorID, rest.ActorName(e.Actor), e.Reason,
	}
}

type segmentVersionBody struct {
	Version   uint64                   `json:"version" example:"7"`
	Timestamp rest.RecordedTime        `json:"timestamp" doc:"When the store recorded the version. Sent as at, it includes the version"`
	Segment   rest.OrNull[segmentBody] `json:"segment" doc:"null for the version that deleted it. /members has the members"`
}

// showVersion shows a version of a segment.
func showVersion(s *state.Segment) segmentVersionBody {
	body := segmentVersionBody{Version: uint64(s.Version), Timestamp: rest.RecordedTime(s.UpdatedAt)}
	if s.Exists {
		body.Segment.Value = new(showSegment(s))
	}
	return body
}

// SegmentVersion returns the JSON of a version of a segment, and its members if it has some that are not private. The
// command line prints it.
func SegmentVersion(s *state.Segment) []byte {
	whole := struct {
		segmentVersionBody
		Included []string `json:"included,omitempty"`
		Excluded []string `json:"excluded,omitempty"`
	}{segmentVersionBody: showVersion(s)}
	if s.Exists && !s.Private {
		whole.Included, whole.Excluded = s.Included.List(0, 0), s.Excluded.List(0, 0)
	}
	return rest.EncodeJSON(whole)
}

func (a *API) addVersions() {
	versions := rest.Operation("GET", path+"/versions", "list-segment-versions", tag,
		"The versions of a segment's key, newest first")
	rest.Register(a.Core, reading, versions, func(ctx context.Context, in *struct {
		SegmentPath
		rest.PageInput
	}) (*rest.ListOutput[segmentVersionEntry], error) {
		list, err := a.Queries.History(ctx, rest.PrincipalOf(ctx).Tenant.ID(), "segment", in.Key, queries.HistoryFilter{},
			in.Page())
		return rest.ListResponse(ctx, in.PageInput, list, err, showVersionEntry)
	})
	version := rest.Operation("GET", path+"/versions/{version}", "get-segment-version", tag,
		"A segment as it was at a version")
	rest.Register(a.Core, reading, version, func(ctx context.Context, in *struct {
		SegmentPath
		Version int64 `path:"version" minimum:"1" example:"7"`
	}) (*struct{ Body segmentVersionBody }, error) {
		slot, err := a.AcquireHistorySlot(ctx, time.Time{})
		if err != nil {
			return nil, err
		}
		defer slot.Leave()
		s, err := a.Queries.SegmentStateAt(ctx, rest.PrincipalOf(ctx).Tenant, in.Key,
			queries.Moment{Version: events.Revision(in.Version)})
		if err != nil {
			return nil, err
		}
		return &struct{ Body segmentVersionBody }{showVersion(s)}, nil
	})
	diff := rest.Operation("GET", path+"/diff", "compare-segment-versions", tag,
		"What changed of a segment between two versions or times")
	diff.Description = "The answer is 404 if the segment did not exist at one of them, and names which. Members that " +
		"one of them lacks are `included` and `excluded`; of a private segment their number."
	rest.Register(a.Core, reading, diff, func(ctx context.Context, in *struct {
		SegmentPath
		rest.DiffInput
	}) (*struct{ Body rest.DiffBody }, error) {
		ends, err := in.Ends(ctx, a.Core, "segment.")
		if err != nil {
			return nil, err
		}
		slot, err := a.EnterPast(ctx)
		if err != nil {
			return nil, err
		}
		defer slot.Leave()
		var segments [2]*state.Segment
		for i, end := range ends {
			segments[i], err = a.Queries.SegmentAt(ctx, rest.PrincipalOf(ctx).Tenant, in.Key, end.Moment)
			if errors.Is(err, queries.ErrNotFound) {
				return nil, rest.NewProblem(http.StatusNotFound, "the segment did not exist at `"+end.Name+"`")
			}
			if err != nil {
				return nil, err
			}
		}
		body, err := compareSegments(segments[0], segments[1])
		return &struct{ Body rest.DiffBody }{body}, err
	})
}

// compareSegments returns the differences between two versions. Of members it has those that one version lacks.
func compareSegments(before, after *state.Segment) (rest.DiffBody, error) {
	bodies := [2]segmentBody{showSegment(before), showSegment(after)}
	d, err := rest.NewDiff(bodies[0].Version, bodies[1].Version, bodies[0], bodies[1])
	if err != nil {
		return d, err
	}
	var fields [2]map[string]json.RawMessage
	for i, body := range bodies {
		if err := json.Unmarshal(rest.EncodeJSON(body), &fields[i]); err != nil {
			return d, err
		}
		for _, always := range []string{"version", "createdAt", "updatedAt", "rules", "counts"} {
			delete(fields[i], always)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields[0])) {
		d.Add(name, nil, rest.Value(fields[0][name]), rest.Value(fields[1][name]))
	}
	id := func(r segmentRuleBody) string { return r.ID }
	d.AddLists("rules", nil, rest.ByID(bodies[0].Rules, id), rest.ByID(bodies[1].Rules, id))
	for _, list := range []events.MemberList{events.Included, events.Excluded} {
		from, to := before.List(list), after.List(list)
		if gone, added := from.Minus(*to), to.Minus(*from); before.Private || after.Private {
			d.Add(string(list), nil, len(gone), len(added))
		} else {
			d.Add(string(list), nil, gone, added)
		}
	}
	return d, nil
}
