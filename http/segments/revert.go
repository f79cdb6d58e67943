package segments

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/events/state"
	"flagledger/http/rest"
)

func (a *API) addRevert() {
	revert := rest.Operation("POST", path+"/revert", "revert-segment", tag, "Revert a segment to an earlier state")
	revert.Description = "Restores the fields, rules and members of the segment at a version or a time. A deleted or " +
		"replaced segment is re-created with its old ids. The answer is 409, and nothing changes, if a segment that the " +
		"rules referred to was deleted, or if the members of that version were forgotten. " + referText
	revert.Errors = []int{http.StatusConflict}
	revert = rest.WithExamples(revert, map[string]any{"version": 1}, nil)
	rest.Register(a.Core, changing, revert, func(ctx context.Context, in *struct {
		SegmentChange
		Body rest.RevertBody
	}) (*segmentOutput, error) {
		m, err := in.Body.Moment(a.Now())
		if err != nil {
			return nil, err
		}
		leaveMemory, err := a.EnterRevert(ctx)
		if err != nil {
			return nil, err
		}
		defer leaveMemory()
		to, err := a.segmentAt(ctx, in.Key, m)
		if err != nil {
			return nil, err
		}
		tenant := rest.PrincipalOf(ctx).Tenant
		cmd := commands.RevertSegment{SegmentRef: in.ref(ctx), To: *to, At: m.At.UTC()}
		cmd.Unusable = a.UnusableSegmentKeys(ctx, tenant, in.Key, state.SegmentsOf(to.Rules))
		for key := range cmd.Unusable {
			if _, exists := tenant.Segments().Find(key); !exists {
				cmd.Unusable[key] = "is gone"
			}
		}
		if _, exists := tenant.Segments().Find(in.Key); !exists {
			count, release, err := a.countSegments(ctx)
			if err != nil {
				return nil, err
			}
			defer release()
			cmd.SegmentCount = count
		}
		leave, err := a.EnterChanges(ctx) // a small body may restore a large segment
		if err != nil {
			return nil, err
		}
		defer leave()
		return a.write(ctx, cmd)
	})
}
