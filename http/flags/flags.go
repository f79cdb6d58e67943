package flags

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/flagd"
	"flagledger/queries"
)

// FlagFields are the fields of a flag that are the same in all environments.
type FlagFields struct {
	ID           string            `json:"id" example:"0198c5a1-5b7e-7d10-a3f2-8c4e6b0d9f31"`
	Key          string            `json:"key" example:"new-checkout"`
	Name         string            `json:"name" example:"New checkout"`
	Type         string            `json:"type" enum:"boolean,string,number,json"`
	DefaultValue rest.Value        `json:"defaultValue" doc:"What is served while the flag is off" example:"false"`
	Description  string            `json:"description" example:"The checkout of one page"`
	Tags         []string          `json:"tags" example:"[\"web\"]"`
	ProjectID    *string           `json:"projectId" nullable:"true" doc:"null without a project" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
	Permanent    bool              `json:"permanent" doc:"A flag that is meant to stay, such as a kill switch: it is never settled or unused" example:"false"`
	ClientSide   bool              `json:"clientSide" doc:"Whether browsers and phones with an evaluation key see the flag. Everything that it serves is public then" example:"false"`
	Owner        *string           `json:"owner" nullable:"true" doc:"The id of the member who is responsible for the flag. null without one, and while that person is not a member of the tenant; versions and their differences name them all the same" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	Links        []linkBody        `json:"links"`
	OffServes    string            `json:"offServes" enum:"value,code" doc:"What OFREP answers while the flag is off: its default value; or no value, so that the default in the application's code is used. Other evaluations answer the default value" example:"value"`
	Status       string            `json:"status" enum:"active,inactive,archived" example:"active"`
	Version      uint64            `json:"version" doc:"The number of the flag's last event" example:"7"`
	CreatedAt    rest.RecordedTime `json:"createdAt"`
	UpdatedAt    rest.RecordedTime `json:"updatedAt"`
}

type linkBody struct {
	Title string `json:"title" minLength:"1" maxLength:"200" example:"Rollout plan"`
	URL   string `json:"url" maxLength:"2000" pattern:"^https://" example:"https://wiki.example.com/checkout"`
}

// links returns the links of a request.
func links(sent []linkBody) []events.Link {
	var list []events.Link
	for _, l := range sent {
		list = append(list, events.Link(l))
	}
	return list
}

// FlagBody is a flag in a list, as it stands in the environment of the call.
type FlagBody struct {
	FlagFields
	Enabled bool `json:"enabled" doc:"In the environment of the call" example:"true"`
	*FlagUse
}

// FlagUse is the current usage of a flag, and how it may be used. Historical responses omit it.
type FlagUse struct {
	LastEvaluatedAt  *rest.Timestamp   `json:"lastEvaluatedAt" required:"false" nullable:"true" doc:"In any environment, accurate to five seconds; null if never. Historical responses omit it, lastPrefetchedAt, lastRequiredAt and lifecycle"`
	LastPrefetchedAt *rest.Timestamp   `json:"lastPrefetchedAt" required:"false" nullable:"true" doc:"When the flag was last evaluated as one of all flags, as lastEvaluatedAt"`
	LastRequiredAt   *rest.Timestamp   `json:"lastRequiredAt" required:"false" nullable:"true" doc:"When the flag was last evaluated on behalf of another flag that requires it, as lastEvaluatedAt"`
	Lifecycle        string            `json:"lifecycle" required:"false" enum:"archived,new,unused,settled,live" doc:"The first that applies: archived, by its status; new, never evaluated, also not on behalf of another flag, and created less than the stale time ago; unused, neither evaluated, nor prefetched, nor evaluated on behalf of another flag for the stale time; settled, unchanged for the stale time and evaluated in it with one outcome in each environment; live. A permanent flag is never unused or settled. The stale time is 30 days by default" example:"live"`
	Problems         []problemBody     `json:"problems,omitempty" doc:"What is wrong with what the flag depends on, if anything: only changes on several nodes at once lead to it. Historical responses omit it"`
	InProcess        *inProcessBody    `json:"inProcess,omitempty" doc:"Whether flagd's OpenFeature providers can evaluate the flag in the environment of the call in process. Historical responses omit it"`
	Dependencies     *dependencyCounts `json:"dependencies,omitempty" doc:"Other flags that the flag requires, and that require it, directly and in the environment of the call. Absent if there are none. Historical responses omit it"`
}

type dependencyCounts struct {
	Requires   int `json:"requires" doc:"How many other flags it requires" example:"2"`
	RequiredBy int `json:"requiredBy" doc:"How many flags require it" example:"3"`
}

type problemBody struct {
	Code        string `json:"code" enum:"segment_missing,segment_cycle,prerequisite_missing,prerequisite_cycle,prerequisite_limit" doc:"The segment does not exist, so nobody is in it; or the reference to it closes a cycle, so nobody matches by it. The required flag does not exist, so it is off; or requiring it closes a cycle or exceeds a limit, so that the prerequisite is not met" example:"segment_missing"`
	Key         string `json:"key" doc:"Of the segment, or of the required flag" example:"beta"`
	Environment string `json:"environment" example:"production"`
}

func showProblems(list []snapshot.FlagProblem) (shown []problemBody) {
	for _, p := range list {
		shown = append(shown, problemBody{string(p.Code), p.Key, p.Environment})
	}
	return shown
}

type inProcessBody struct {
	Supported bool    `json:"supported" doc:"If false, the flag is missing in flagd's documents: evaluate it by OFREP" example:"false"`
	Reason    *string `json:"reason" nullable:"true" doc:"Why it is not supported; null if it is" example:"rule 2: before: flagd cannot compare times"`
}

func showInProcess(f *state.Flag, environmentID string) *inProcessBody {
	support := flagd.Supports(f, environmentID)
	return &inProcessBody{support.Supported, rest.TextOrNull(support.Reason)}
}

// flagDetail is a single flag.
type flagDetail struct {
	FlagBody
	Variations []variationBody `json:"variations" doc:"In the order of their creation"`
}

type flagOutput struct {
	rest.Changed
	ETag     string `header:"ETag" doc:"The flag's version, for If-Match"`
	Location string `header:"Location"`
	Body     flagDetail
}

type switchOutput struct {
	rest.Changed
	ETag string `header:"ETag" doc:"The version of the flag after the call"`
	Body rest.Success
}

// showUsedFlag shows a flag of a tenant with its usage, as it stands in an environment.
func (a *API) showUsedFlag(f queries.Flag, tenant *snapshot.Tenant, environmentID string) FlagBody {
	body := showFlag(f)
	body.FlagUse = a.showUse(f, tenant)
	if live, ok := tenant.Flag(f.Key); ok {
		body.showCurrent(live.State(), tenant, environmentID)
	}
	return body
}

// showCurrent adds what the snapshot says of the flag in an environment.
func (u *FlagUse) showCurrent(f *state.Flag, tenant *snapshot.Tenant, environmentID string) {
	u.InProcess = showInProcess(f, environmentID)
	u.Problems = showProblems(tenant.FlagProblems(f.Key))
	counts := dependencyCounts{len(f.PrerequisitesIn(environmentID)), tenant.RequiredBy(f.Key, environmentID)}
	if counts != (dependencyCounts{}) {
		u.Dependencies = &counts
	}
}

func (a *API) showUse(f queries.Flag, tenant *snapshot.Tenant) *FlagUse {
	return &FlagUse{
		LastEvaluatedAt:  (*rest.Timestamp)(f.LastEvaluated),
		LastPrefetchedAt: (*rest.Timestamp)(f.LastPrefetched),
		LastRequiredAt:   (*rest.Timestamp)(f.LastRequired),
		Lifecycle:        string(f.Lifecycle(a.staleness(tenant))),
	}
}

// staleness says when flags of a tenant count as stale.
func (a *API) staleness(tenant *snapshot.Tenant) queries.Staleness {
	return queries.Staleness{Now: a.Now(), After: a.StaleAfter, DependenciesChanged: tenant.DependenciesChanged}
}

func showFlag(f queries.Flag) FlagBody {
	return FlagBody{FlagFields: showFields(f.State()), Enabled: f.Enabled}
}

// showState shows a flag as its facts add up, in one environment.
func showState(f state.Flag, environmentID string) flagDetail {
	return flagDetail{
		FlagBody:   FlagBody{FlagFields: showFields(f), Enabled: f.Enabled.Has(environmentID)},
		Variations: showVariations(f.Variations),
	}
}

func showFields(f state.Flag) FlagFields {
	fields := FlagFields{
		ID:           f.ID,
		Key:          f.Key,
		Name:         f.Name,
		Type:         string(f.Type),
		DefaultValue: rest.Value(f.DefaultValue),
		Description:  f.Description,
		Tags:         f.Tags,
		ProjectID:    rest.TextOrNull(f.ProjectID),
		Permanent:    f.Permanent,
		ClientSide:   f.ClientSide,
		Owner:        rest.TextOrNull(f.Owner),
		OffServes:    f.OffServes.Text(),
		Status:       string(f.Status),
		Version:      uint64(f.Version),
		CreatedAt:    rest.RecordedTime(f.CreatedAt),
		UpdatedAt:    rest.RecordedTime(f.UpdatedAt),
	}
	for _, l := range f.Links {
		fields.Links = append(fields.Links, linkBody(l))
	}
	return fields
}

func showVariations(list []events.Variation) []variationBody {
	shown := []variationBody{}
	for _, v := range list {
		shown = append(shown, showVariation(v))
	}
	return shown
}

// createFlagText is part of the descriptions of operations that create flags.
const createFlagText = "The number of a tenant's flags is limited (409). " + growFlagText

// FlagPath names a flag and an environment.
type FlagPath struct {
	rest.EnvironmentInput
	Key       string `path:"flagKey" doc:"The flag's key" example:"new-checkout"`
	ProjectID string `path:"projectId" required:"false" hidden:"true"` // empty if the path has no project
}

// FlagChange holds the parameters of every change to a flag.
type FlagChange struct {
	FlagPath
	rest.ChangeInput
	IfMatch string `header:"If-Match" pattern:"^(\\*|(W/)?\"[^\"]*\"( *, *(W/)?\"[^\"]*\")*)$" patternDescription:"* or entity tags in double quotes, such as \"5\"" doc:"The version that the flag must have, as its ETag; 412 if it has another. Tags that a proxy made weak are accepted" example:"\"5\""`
}

func (f FlagChange) ref(ctx context.Context) commands.FlagRef {
	return commands.FlagRef{
		TenantID:   rest.PrincipalOf(ctx).Tenant.ID(),
		Key:        f.Key,
		ProjectID:  f.ProjectID,
		IfVersions: rest.IfMatch(f.IfMatch),
	}
}

// NewFlag holds the fields of a new flag.
type NewFlag struct {
	Key          string                `json:"key" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"Unique in the tenant; never changes" example:"new-checkout"`
	Name         rest.Optional[string] `json:"name,omitzero" minLength:"1" maxLength:"200" doc:"The default is the key" example:"New checkout"`
	Type         string                `json:"type" enum:"boolean,string,number,json" example:"boolean"`
	DefaultValue rest.Value            `json:"defaultValue,omitempty" doc:"What is served while the flag is off; the default is false, \"\", 0 or {}" example:"false"`
	Description  string                `json:"description,omitempty" maxLength:"2000" example:"The checkout of one page"`
	Tags         []string              `json:"tags,omitempty" doc:"A set" example:"[\"web\"]"`
	Permanent    bool                  `json:"permanent,omitempty" doc:"A flag that is meant to stay, such as a kill switch: it is never settled or unused" example:"false"`
	ClientSide   bool                  `json:"clientSide,omitempty" doc:"Whether browsers and phones with an evaluation key see the flag. Everything that it serves is public then" example:"false"`
	Owner        *string               `json:"owner,omitempty" nullable:"true" doc:"The id of a member of the tenant"`
	Links        []linkBody            `json:"links,omitempty" nullable:"true" maxItems:"20" doc:"Pages about the flag"`
	OffServes    rest.Optional[string] `json:"offServes,omitzero" enum:"value,code" doc:"What OFREP answers while the flag is off: value, its default value, which is the default; or code, no value, so that the default in the application's code is used" example:"value"`
	Variations   []newVariationBody    `json:"flag_variations,omitempty"`
}

type createFlagBody struct {
	NewFlag
	ProjectID *string `json:"projectId,omitempty" nullable:"true" doc:"The flag's project, if any" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
}

type updateFlagBody struct {
	Name         rest.Optional[string]     `json:"name,omitzero" minLength:"1" maxLength:"200"`
	Description  rest.Optional[string]     `json:"description,omitzero" maxLength:"2000" nullable:"true" doc:"null clears it"`
	DefaultValue rest.Value                `json:"defaultValue,omitempty"`
	Tags         rest.Optional[[]string]   `json:"tags,omitzero"`
	Status       rest.Optional[string]     `json:"status,omitzero" enum:"active,inactive,archived"`
	ProjectID    rest.Optional[string]     `json:"projectId,omitzero" nullable:"true" doc:"Moves the flag to a project; null takes it out of its project"`
	Permanent    rest.Optional[bool]       `json:"permanent,omitzero"`
	ClientSide   rest.Optional[bool]       `json:"clientSide,omitzero"`
	Owner        rest.Optional[string]     `json:"owner,omitzero" nullable:"true" doc:"The id of a member of the tenant; null removes the owner"`
	Links        rest.Optional[[]linkBody] `json:"links,omitzero" nullable:"true" maxItems:"20" doc:"All links of the flag: they replace the earlier ones. null is an empty list"`
	OffServes    rest.Optional[string]     `json:"offServes,omitzero" enum:"value,code"`
	Enabled      rest.Value                `json:"enabled,omitempty" hidden:"true"`
}

// growFlagText is part of the descriptions of operations that may enlarge a flag.
const growFlagText = "The size is limited of a value, of a flag with all rules, of a tenant's flags (by plan), and " +
	"of the flags of all free and sandbox tenants that a person created. A change that exceeds a limit is 409. " +
	"Numbers in values must be within the range of 64-bit floating point."

// exampleNewFlag can be sent as is: it names no project, which would have to exist.
var exampleNewFlag = map[string]any{
	"key":          "new-checkout",
	"name":         "New checkout",
	"type":         "boolean",
	"defaultValue": false,
	"description":  "The checkout of one page",
	"tags":         []string{"web"},
	"links":        []any{map[string]any{"title": "Rollout plan", "url": "https://wiki.example.com/checkout"}},
	"flag_variations": []any{
		map[string]any{"name": "on", "value": true, "description": "The checkout of one page", "weight": 25},
	},
}

// exampleCreatedFlag returns the response to exampleNewFlag.
func exampleCreatedFlag(project any) map[string]any {
	const now = "2026-03-14T15:09:26.535120Z"
	return map[string]any{
		"id":           "0198c5a1-5b7e-7d10-a3f2-8c4e6b0d9f31",
		"key":          "new-checkout",
		"name":         "New checkout",
		"type":         "boolean",
		"enabled":      false,
		"defaultValue": false,
		"description":  "The checkout of one page",
		"tags":         []string{"web"},
		"projectId":    project,
		"permanent":    false,
		"clientSide":   false,
		"owner":        nil,
		"links": []any{
			map[string]any{"title": "Rollout plan", "url": "https://wiki.example.com/checkout"},
		},
		"offServes":        "value",
		"status":           "active",
		"version":          1,
		"createdAt":        now,
		"updatedAt":        now,
		"lastEvaluatedAt":  nil,
		"lastPrefetchedAt": nil,
		"lastRequiredAt":   nil,
		"lifecycle":        "new",
		"inProcess":        map[string]any{"supported": true, "reason": nil},
		"variations": []any{
			map[string]any{
				"id":          rest.ExampleVariation,
				"name":        "on",
				"value":       true,
				"description": "The checkout of one page",
				"weight":      25,
			},
		},
	}
}

func (a *API) addFlags() {
	const tag = "Flags"
	reading, creating := rest.ReadFlagsAt, rest.ChangeFlags
	reading.RequireTenant, creating.RequireTenant = true, true

	rest.Register(a.Core, reading, rest.Operation("GET", "/api/v1/flags", "list-flags", tag, "The tenant's flags by key"),
		func(ctx context.Context, in *struct {
			FlagFilter
			ProjectID string `query:"projectId"`
		}) (*rest.ListOutput[FlagBody], error) {
			return a.listFlags(ctx, in.FlagFilter, events.CanonicalID(in.ProjectID))
		})
	create := rest.Operation("POST", "/api/v1/flags", "create-flag", tag, "Create a flag")
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	create.Description = createFlagText
	create = rest.WithExamples(create, exampleNewFlag, exampleCreatedFlag(nil))
	rest.Register(a.Core, creating, create, func(ctx context.Context, in *struct {
		rest.EnvironmentInput
		rest.ChangeInput
		Body createFlagBody
	}) (*flagOutput, error) {
		cmd := in.Body.command(ctx)
		if in.Body.ProjectID != nil {
			cmd.ProjectID = events.CanonicalID(*in.Body.ProjectID)
			known, err := a.hasProject(ctx, cmd.ProjectID)
			if err != nil {
				return nil, err
			}
			cmd.ProjectMissing = !known
		}
		return a.createFlag(ctx, cmd, "/api/v1/flags/")
	})
	a.addFlag(flagRoute{path: "/api/v1/flags/{flagKey}", tag: tag}, reading)
	a.addCleanup()
}

// flagRoute is the route of the operations on one flag: under its tenant, or under a project.
type flagRoute struct {
	path, tag  string
	idEnd      string // suffix of the operation ids
	parameters []*huma.Param
}

func (f flagRoute) operation(method, tail, id, summary string) huma.Operation {
	op := rest.Operation(method, f.path+tail, id+f.idEnd, f.tag, summary)
	op.Parameters = slices.Clone(f.parameters)
	return op
}

// addFlag adds the operations on one flag.
func (a *API) addFlag(at flagRoute, reading rest.Access) {
	get := at.operation("GET", "", "get-flag", "One flag with its variations")
	get.Description = rest.HistoryText
	rest.Register(a.Core, reading, get, a.getFlag)
	update := rest.WithExamples(at.operation("PATCH", "", "update-flag", "Change the sent fields of a flag"),
		map[string]any{
			"name": "New checkout", "description": "The checkout of one page", "tags": []string{"web"}, "status": "active",
		}, nil)
	update.Description = "A flag that others require cannot be archived (409). " + growFlagText
	update.Errors = append(update.Errors, http.StatusConflict)
	rest.Register(a.Core, rest.ChangeFlags, update, a.updateFlag)
	remove := at.operation("DELETE", "", "delete-flag", "Delete a flag; its history remains")
	remove.DefaultStatus = http.StatusNoContent
	remove.Description = "The answer is 409 if other flags require it."
	remove.Errors = append(remove.Errors, http.StatusConflict)
	rest.Register(a.Core, rest.ChangeFlags, remove, func(ctx context.Context, in *FlagChange) (*rest.NoContent, error) {
		_, done, err := rest.Do(ctx, a.Writer, commands.DeleteFlag{
			FlagRef: in.ref(ctx), Dependents: dependents(rest.PrincipalOf(ctx).Tenant, in.Key),
		})
		return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
	})
	for name, on := range map[string]bool{"enable": true, "disable": false} {
		rest.Register(a.Core, rest.ChangeFlags, at.operation("POST", "/"+name, name+"-flag",
			"Toggle a flag in an environment: "+name),
			func(ctx context.Context, in *FlagChange) (*switchOutput, error) {
				flag, done, err := rest.Do(ctx, a.Writer, commands.SwitchFlag{
					FlagRef: in.ref(ctx), Environment: rest.PrincipalOf(ctx).Environment.EnvironmentRef, On: on,
				})
				return &switchOutput{Changed: rest.ChangeHeaders(done), ETag: rest.ETag(flag.Version),
					Body: rest.Success{Success: true}}, err
			})
	}
}

func (a *API) getFlag(ctx context.Context, in *FlagRead) (*flagOutput, error) {
	if then, environment, asked, err := in.past(ctx, a); asked {
		if err == nil {
			then.Owner, err = a.ownerAt(ctx, then)
		}
		return &flagOutput{Body: showState(then, environment.ID)}, err
	}
	p := rest.PrincipalOf(ctx)
	flag, variations, err := a.Queries.Flag(ctx, p.Tenant.ID(), p.Environment.ID, in.Key)
	if err != nil {
		return nil, err
	}
	if in.ProjectID != "" && (flag.ProjectID == nil || *flag.ProjectID != in.ProjectID) {
		return nil, queries.ErrNotFound
	}
	return &flagOutput{
		ETag: rest.ETag(events.Revision(flag.Version)),
		Body: flagDetail{
			FlagBody:   a.showUsedFlag(flag, p.Tenant, p.Environment.ID),
			Variations: showVariations(variations),
		},
	}, nil
}

// ownerAt returns the owner of a flag at the moment of the call, empty if they were not a member then.
func (a *API) ownerAt(ctx context.Context, f state.Flag) (string, error) {
	if f.Owner == "" {
		return "", nil
	}
	m, _, err := rest.MomentFromURL(rest.RequestOf(ctx).URL, a.Now())
	if err != nil {
		return "", err
	}
	member, err := a.Queries.WasMember(ctx, rest.PrincipalOf(ctx).Tenant.ID(), f.Owner, m.Time(f))
	if err != nil || !member {
		return "", err
	}
	return f.Owner, nil
}

// isMember reports whether a person is a member of the call's tenant.
func isMember(ctx context.Context, userID string) bool {
	_, member := rest.PrincipalOf(ctx).Tenant.Role(userID)
	return member
}

// FlagFilter holds the filters and the page of a list of flags.
type FlagFilter struct {
	rest.EnvironmentInput
	rest.PageInput
	rest.HistoricalListInput
	Type       string `query:"type" enum:"boolean,string,number,json"`
	Status     string `query:"status" enum:"active,inactive,archived"`
	Enabled    string `query:"enabled" enum:"true,false" doc:"In the environment of the call"`
	Tag        string `query:"tag"`
	ClientSide string `query:"clientSide" enum:"true,false"`
	Owner      string `query:"owner" doc:"The id of a person, or me for the caller. The flags of one who left are found too, although their owner is null"`
	Search     string `query:"q" doc:"Words in any order, each part of the key, the name, the description or a tag; case-insensitive"`
	Sort       string `query:"sort" enum:"key,-key,createdAt,-createdAt,updatedAt,-updatedAt,lastEvaluatedAt,-lastEvaluatedAt" default:"key" doc:"The order; - for descending. Ties are in the order of keys; flags that were never evaluated sort as the earliest"`

	Lifecycle       string    `query:"lifecycle" enum:"archived,new,unused,settled,live" doc:"Not allowed with at"`
	EvaluatedBefore time.Time `query:"evaluatedBefore" doc:"Flags that were last evaluated before this time, or never. Not allowed with at"`
}

// checkPast refuses filters by usage in a historical list.
func (f FlagFilter) checkPast() error {
	wrong := map[string]string{}
	note := func(name string, sent bool) {
		if sent && !f.At.IsZero() {
			wrong[name] = "is not allowed with at: the usage of flags has no history"
		}
	}
	note("lifecycle", f.Lifecycle != "")
	note("evaluatedBefore", !f.EvaluatedBefore.IsZero())
	note("sort", strings.TrimPrefix(f.Sort, "-") == string(queries.ByLastEvaluatedAt))
	return rest.WrongFields(wrong)
}

// listFlags lists the flags of a project, or of all if projectID is empty, now or at a time.
func (a *API) listFlags(ctx context.Context, in FlagFilter, projectID string) (*rest.ListOutput[FlagBody], error) {
	filter := queries.FlagFilter{
		ProjectID:       projectID,
		Type:            in.Type,
		Status:          in.Status,
		Owner:           events.CanonicalID(in.Owner),
		Tag:             in.Tag,
		Search:          in.Search,
		EvaluatedBefore: in.EvaluatedBefore,
	}
	if in.Enabled != "" {
		filter.Enabled = new(in.Enabled == "true")
	}
	if in.ClientSide != "" {
		filter.ClientSide = new(in.ClientSide == "true")
	}
	if err := in.checkPast(); err != nil {
		return nil, err
	}
	if in.Owner == "me" {
		if rest.PrincipalOf(ctx).Machine != nil {
			return nil, rest.Invalid(map[string]string{"owner": "must be a person's id: the caller is a machine"})
		}
		filter.Owner = rest.PrincipalOf(ctx).Claims.UserID
	}
	environment, err := a.EnvironmentIDAt(ctx, in.Environment, in.At)
	if err != nil {
		return nil, err
	}
	if in.Lifecycle != "" {
		filter.Lifecycles = []queries.Lifecycle{queries.Lifecycle(in.Lifecycle)}
	}
	tenant := rest.PrincipalOf(ctx).Tenant
	show := func(f queries.Flag) FlagBody { return a.showUsedFlag(f, tenant, environment) }
	if !in.At.IsZero() {
		show = showFlag
	}
	list, err := a.Queries.Flags(ctx, queries.FlagList{
		TenantID:      tenant.ID(),
		EnvironmentID: environment,
		At:            in.At,
		Filter:        filter,
		Sort:          queries.FlagSort(in.Sort),
		Page:          in.Page(),
		Stale:         a.staleness(tenant),
		Changed:       tenant.FlagsChanged(),
	})
	return rest.ListResponse(ctx, in.PageInput, list, err, show)
}

// command returns the command that creates the flag, without a project.
func (n NewFlag) command(ctx context.Context) commands.CreateFlag {
	tenant := rest.PrincipalOf(ctx).Tenant
	cmd := commands.CreateFlag{
		TenantID:     tenant.ID(),
		Key:          n.Key,
		ID:           rest.NewID(ctx),
		Name:         n.Name.Sent,
		Type:         events.FlagType(n.Type),
		DefaultValue: json.RawMessage(n.DefaultValue),
		Description:  n.Description,
		Tags:         n.Tags,
		Permanent:    n.Permanent,
		ClientSide:   n.ClientSide,
		Links:        links(n.Links),
		OffServes:    n.OffServes.Sent,
		Rules:        tenant.FlagRules(),
		Salt:         commands.NewSalt(),
	}
	if n.Owner != nil {
		cmd.Owner = events.CanonicalID(*n.Owner)
		cmd.OwnerMissing = !isMember(ctx, cmd.Owner)
	}
	for _, v := range n.Variations {
		cmd.Variations = append(cmd.Variations, v.variation(ctx))
	}
	return cmd
}

// createFlag creates a flag. Its Location begins with path.
func (a *API) createFlag(ctx context.Context, cmd commands.CreateFlag, path string) (*flagOutput, error) {
	flags, release, err := a.countFlags(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	cmd.FlagCount = flags
	out, err := a.writeFlag(ctx, cmd)
	if err != nil {
		return nil, err
	}
	out.Location = rest.PublicPath(ctx, path+cmd.Key)
	return out, nil
}

// countFlags counts the flags of the tenant for a command that adds one: see writer.Writer.Reserve.
func (a *API) countFlags(ctx context.Context) (flags int, release func(), err error) {
	tenant := rest.PrincipalOf(ctx).Tenant
	return a.Writer.Reserve(ctx, "flags of "+tenant.ID(), commands.MaxFlags, func() int {
		flags, _ := tenant.Size()
		return flags
	})
}

func (a *API) updateFlag(ctx context.Context, in *struct {
	FlagChange
	Body updateFlagBody
}) (*flagOutput, error) {
	in.Body.Permanent.RefuseNull(ctx, "permanent")
	in.Body.ClientSide.RefuseNull(ctx, "clientSide")
	var replaced *[]events.Link
	if in.Body.Links.Sent != nil {
		replaced = new(append([]events.Link{}, links(*in.Body.Links.Sent)...))
	}
	owner, project := in.Body.Owner.Sent, in.Body.ProjectID.Sent
	if owner != nil {
		*owner = events.CanonicalID(*owner)
	}
	known := true
	if project != nil && !in.Body.ProjectID.Null {
		*project = events.CanonicalID(*project)
		var err error
		if known, err = a.hasProject(ctx, *project); err != nil {
			return nil, err
		}
	}
	return a.writeFlag(ctx, commands.UpdateFlag{
		FlagRef:        in.ref(ctx),
		Name:           in.Body.Name.Sent,
		Description:    in.Body.Description.Sent,
		DefaultValue:   json.RawMessage(in.Body.DefaultValue),
		Tags:           in.Body.Tags.Sent,
		Status:         (*events.FlagStatus)(in.Body.Status.Sent),
		MoveTo:         project,
		ProjectMissing: !known,
		Permanent:      in.Body.Permanent.Sent,
		ClientSide:     in.Body.ClientSide.Sent,
		Owner:          owner,
		Links:          replaced,
		OffServes:      in.Body.OffServes.Sent,
		OwnerMissing:   owner != nil && !in.Body.Owner.Null && !isMember(ctx, *owner),
		EnabledSent:    in.Body.Enabled != nil,
		Dependents:     dependents(rest.PrincipalOf(ctx).Tenant, in.Key),
	})
}

func (a *API) writeFlag(ctx context.Context, cmd commands.Command[state.Flag]) (*flagOutput, error) {
	flag, done, err := rest.Do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	p := rest.PrincipalOf(ctx)
	if !isMember(ctx, flag.Owner) {
		flag.Owner = ""
	}
	body := showState(flag, p.Environment.ID)
	if body.FlagUse = a.useAfter(ctx, flag); body.FlagUse != nil {
		body.showCurrent(&flag, p.Tenant, p.Environment.ID)
	}
	return &flagOutput{Changed: rest.ChangeHeaders(done), ETag: rest.ETag(flag.Version), Body: body}, nil
}

// useAfter reads the usage of a flag after a change. It returns nil if that fails, as the change was made.
func (a *API) useAfter(ctx context.Context, f state.Flag) *FlagUse {
	use, err := a.Queries.FlagUse(ctx, rest.PrincipalOf(ctx).Tenant.ID(), f.Key)
	if err != nil && !errors.Is(err, queries.ErrNotFound) {
		return nil
	}
	row := queries.Flag{
		Key:       f.Key,
		Status:    string(f.Status),
		Permanent: f.Permanent,
		CreatedAt: f.CreatedAt,
		UpdatedAt: f.UpdatedAt,
		FlagUse:   use,
	}
	return a.showUse(row, rest.PrincipalOf(ctx).Tenant)
}

// FlagRead names a flag, an environment and a moment.
type FlagRead struct {
	FlagPath
	rest.FlagAtInput
}

// past reads the historical state of the flag; asked is false if the call names no moment.
func (in FlagRead) past(
	ctx context.Context, a *API,
) (f state.Flag, environment state.Environment, asked bool, err error) {
	m, asked, err := rest.MomentFromURL(rest.RequestOf(ctx).URL, a.Now())
	if err != nil || !asked {
		return f, environment, asked, err
	}
	slot, err := a.AcquireHistorySlot(ctx, m.At)
	if err != nil {
		return f, environment, true, err
	}
	defer slot.Leave()
	f, environment, err = a.FlagAt(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.Key, in.Environment, m)
	if err == nil && in.ProjectID != "" && f.ProjectID != in.ProjectID {
		err = queries.ErrNotFound
	}
	return f, environment, true, err
}
