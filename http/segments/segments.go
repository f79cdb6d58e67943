package segments

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"flagledger/commands"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// segmentBody is a segment in a response.
type segmentBody struct {
	ID          string            `json:"id" example:"0198c5a1-4d3e-7b61-8f20-6a1d9c5e7b04"`
	Key         string            `json:"key" example:"beta"`
	Name        string            `json:"name" example:"Beta testers"`
	Description string            `json:"description" example:"People who asked for early versions"`
	Tags        []string          `json:"tags" example:"[\"web\"]"`
	Private     bool              `json:"private" doc:"Its members can be checked, but not listed" example:"false"`
	Version     uint64            `json:"version" doc:"The number of the segment's last event" example:"7"`
	Rules       []segmentRuleBody `json:"rules" doc:"Who matches one of them is in the segment, unless excluded"`
	Counts      segmentCountsBody `json:"counts"`
	UsedBy      *int              `json:"usedBy,omitempty" doc:"How many flags and segments refer to it. Historical responses omit it" example:"3"`
	CreatedAt   rest.RecordedTime `json:"createdAt"`
	UpdatedAt   rest.RecordedTime `json:"updatedAt"`
}

type segmentCountsBody struct {
	Included int `json:"included" doc:"Members that are in the segment" example:"120"`
	Excluded int `json:"excluded" doc:"Members that are not, whatever the rules say" example:"2"`
}

func showSegment(s *state.Segment) segmentBody {
	return segmentBody{
		ID:          s.ID,
		Key:         s.Key,
		Name:        s.Name,
		Description: s.Description,
		Tags:        s.Tags,
		Private:     s.Private,
		Version:     uint64(s.Version),
		Rules:       showRules(s.Rules),
		Counts:      segmentCountsBody{s.Included.Len(), s.Excluded.Len()},
		CreatedAt:   rest.RecordedTime(s.CreatedAt),
		UpdatedAt:   rest.RecordedTime(s.UpdatedAt),
	}
}

// showUsed shows a segment as it is now, with how many flags and segments refer to it.
func showUsed(s *state.Segment, users int) segmentBody {
	body := showSegment(s)
	body.UsedBy = &users
	return body
}

type segmentOutput struct {
	rest.Changed
	ETag     string `header:"ETag" doc:"The segment's version, for If-Match"`
	Location string `header:"Location"`
	Body     segmentBody
}

type createSegmentBody struct {
	Key         string                `json:"key" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"Unique in the tenant; never changes" example:"beta"`
	Name        rest.Optional[string] `json:"name,omitzero" minLength:"1" maxLength:"200" doc:"The default is the key" example:"Beta testers"`
	Description string                `json:"description,omitempty" maxLength:"2000" example:"People who asked for early versions"`
	Tags        []string              `json:"tags,omitempty" doc:"A set" example:"[\"web\"]"`
	Rules       []rest.NewSegmentRule `json:"rules,omitempty" maxItems:"100"`
	Private     bool                  `json:"private,omitempty" doc:"Record hashes of the members; this never changes" example:"false"`
}

type updateSegmentBody struct {
	Name        rest.Optional[string]   `json:"name,omitzero" minLength:"1" maxLength:"200" example:"Beta testers"`
	Description rest.Optional[string]   `json:"description,omitzero" maxLength:"2000" nullable:"true" doc:"null clears it" example:"People who asked for early versions"`
	Tags        rest.Optional[[]string] `json:"tags,omitzero" example:"[\"web\"]"`
}

var (
	exampleNew = map[string]any{
		"key": "beta", "name": "Beta testers", "description": "People who asked for early versions",
		"tags": []string{"web"}, "rules": []any{exampleRule(false)},
	}
	exampleSegment = map[string]any{
		"id": "0198c5a1-4d3e-7b61-8f20-6a1d9c5e7b04", "key": "beta", "name": "Beta testers",
		"description": "People who asked for early versions", "tags": []string{"web"}, "private": false, "version": 2,
		"rules": []any{exampleRule(true)}, "counts": map[string]any{"included": 0, "excluded": 0}, "usedBy": 0,
		"createdAt": "2026-03-14T15:09:26.535120Z", "updatedAt": "2026-03-14T15:09:26.535120Z",
	}
)

func (a *API) addSegments() {
	list := rest.Operation("GET", "/api/v1/segments", "list-segments", tag, "The tenant's segments by key")
	rest.Register(a.Core, reading, list, func(ctx context.Context, in *struct {
		rest.TenantInput
		rest.PageInput
		rest.HistoricalListInput
		Tag    string `query:"tag"`
		Search string `query:"q" doc:"Part of the key or the name; case-insensitive"`
	}) (*rest.ListOutput[segmentBody], error) {
		tenant := rest.PrincipalOf(ctx).Tenant
		var found []*state.Segment
		users := tenant.SegmentUserCounts()
		show := func(s *state.Segment) segmentBody { return showUsed(s, users[s.Key]) }
		if in.At.IsZero() {
			for _, s := range tenant.Segments().All() {
				if s.State().Exists {
					found = append(found, s.State())
				}
			}
		} else {
			if err := a.Queries.WaitUntilCurrent(ctx, in.At, "segment."); err != nil {
				return nil, err
			}
			slot, err := a.EnterPast(ctx)
			if err != nil {
				return nil, err
			}
			defer slot.Leave()
			if found, err = a.Queries.SegmentsListAt(ctx, tenant, in.At); err != nil {
				return nil, err
			}
			show = showSegment
		}
		found = slices.DeleteFunc(found, func(s *state.Segment) bool { return !matches(s, in.Tag, in.Search) })
		return rest.ListResponse(ctx, in.PageInput, queries.ListOf(found, in.Page()), nil, show)
	})
	create := rest.Operation("POST", "/api/v1/segments", "create-segment", tag, "Create a segment")
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	create.Description = "A segment holds in all environments. " + privateText + " " + referText
	create = rest.WithExamples(create, exampleNew, exampleSegment)
	rest.Register(a.Core, changing, create, func(ctx context.Context, in *struct {
		rest.TenantInput
		rest.ChangeInput
		Body createSegmentBody
	}) (*segmentOutput, error) {
		tenant := rest.PrincipalOf(ctx).Tenant
		count, release, err := a.countSegments(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		sent, id, saltID := rest.SentSegmentRules(in.Body.Rules), rest.NewID(ctx), ""
		if in.Body.Private {
			if saltID, err = a.Salts.Add(ctx, tenant.ID(), id); err != nil {
				return nil, err
			}
		}
		out, err := a.write(ctx, commands.CreateSegment{
			TenantID:     tenant.ID(),
			Key:          in.Body.Key,
			ID:           id,
			Name:         in.Body.Name.Sent,
			Description:  in.Body.Description,
			Tags:         in.Body.Tags,
			Rules:        sent,
			SaltID:       saltID,
			Unusable:     a.UnusableSegments(ctx, tenant, in.Body.Key, sent),
			SegmentCount: count,
		})
		if err != nil {
			a.dropSalt(ctx, saltID, err)
			return nil, err
		}
		out.Location = rest.PublicPath(ctx, "/api/v1/segments/"+in.Body.Key)
		return out, nil
	})
	get := rest.Operation("GET", path, "get-segment", tag, "One segment")
	get.Description = historyText
	rest.Register(a.Core, reading, get, func(ctx context.Context, in *SegmentRead) (*segmentOutput, error) {
		s, past, err := in.read(ctx, a)
		if err != nil {
			return nil, err
		}
		if past {
			return &segmentOutput{Body: showSegment(s)}, nil
		}
		users := rest.PrincipalOf(ctx).Tenant.SegmentUserCount(s.Key)
		return &segmentOutput{ETag: rest.ETag(s.Version), Body: showUsed(s, users)}, nil
	})
	update := rest.Operation("PATCH", path, "update-segment", tag, "Change the sent fields of a segment")
	rest.Register(a.Core, changing, update, func(ctx context.Context, in *struct {
		SegmentChange
		Body updateSegmentBody
	}) (*segmentOutput, error) {
		return a.write(ctx, commands.UpdateSegment{
			SegmentRef:  in.ref(ctx),
			Name:        in.Body.Name.Sent,
			Description: in.Body.Description.Sent,
			Tags:        in.Body.Tags.Sent,
		})
	})
	remove := rest.Operation("DELETE", path, "delete-segment", tag, "Delete a segment that nothing refers to")
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = []int{http.StatusConflict}
	remove.Description = "The answer is 409 and names the flags and segments that refer to it, if there are some. The " +
		"segment's history stays."
	rest.Register(a.Core, changing, remove, func(ctx context.Context, in *SegmentChange) (*rest.NoContent, error) {
		_, done, err := rest.Do(ctx, a.Writer, commands.DeleteSegment{
			SegmentRef: in.ref(ctx), Users: userNames(rest.PrincipalOf(ctx).Tenant.SegmentUsers(in.Key)),
		})
		return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
	})
}

// referText is part of the descriptions of operations that set rules.
const referText = "Rules may refer to other segments by `in_segment`: without cycles, and in chains of limited length (422). " +
	"The number of a tenant's segments and the size of a segment are limited (409); members count in the bytes of the " +
	"tenant's flags."

// matches reports whether a segment has a tag and a text; empty ones match all.
func matches(s *state.Segment, tag, search string) bool {
	search = strings.ToLower(search)
	return (tag == "" || slices.Contains(s.Tags, tag)) &&
		(strings.Contains(strings.ToLower(s.Key), search) || strings.Contains(strings.ToLower(s.Name), search))
}

// countSegments counts the segments of the tenant for a command that adds one: see writer.Writer.Reserve.
func (a *API) countSegments(ctx context.Context) (count int, release func(), err error) {
	tenant := rest.PrincipalOf(ctx).Tenant
	return a.Writer.Reserve(ctx, "segments of "+tenant.ID(), commands.MaxSegments, tenant.SegmentCount)
}

func (a *API) write(ctx context.Context, cmd commands.Command[state.Segment]) (*segmentOutput, error) {
	s, done, err := rest.Do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	return &segmentOutput{
		Changed: rest.ChangeHeaders(done), ETag: rest.ETag(s.Version),
		Body: showUsed(&s, rest.PrincipalOf(ctx).Tenant.SegmentUserCount(s.Key)),
	}, nil
}

// userNames names each user of a segment once, in words.
func userNames(users []snapshot.SegmentUser) (names []string) {
	seen := map[string]bool{}
	for _, u := range users {
		name := "the segment " + u.SegmentKey
		if u.FlagKey != "" {
			name = "the flag " + u.FlagKey + " in " + u.Environment.Name
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

type segmentUserBody struct {
	FlagKey     string `json:"flagKey,omitzero" doc:"Absent for a segment" example:"new-checkout"`
	Environment string `json:"environment,omitzero" doc:"Of the flag's rule" example:"production"`
	SegmentKey  string `json:"segmentKey,omitzero" doc:"Absent for a flag" example:"staff"`
	RuleID      string `json:"ruleId" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
}

func (a *API) addUsers() {
	users := rest.Operation("GET", path+"/flags", "list-segment-users", tag, "The rules that refer to a segment")
	users.Description = "Rules of flags first, by their keys, and then those of segments."
	rest.Register(a.Core, reading, users, func(ctx context.Context, in *struct {
		SegmentPath
		rest.PageInput
	}) (*rest.ListOutput[segmentUserBody], error) {
		tenant := rest.PrincipalOf(ctx).Tenant
		if _, ok := tenant.Segments().Find(in.Key); !ok {
			return nil, queries.ErrNotFound
		}
		list := queries.ListOf(tenant.SegmentUsers(in.Key), in.Page())
		return rest.ListResponse(ctx, in.PageInput, list, nil, func(u snapshot.SegmentUser) segmentUserBody {
			return segmentUserBody{u.FlagKey, u.Environment.Name, u.SegmentKey, u.RuleID}
		})
	})
}
