package http

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/wI2L/jsondiff"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
	"flagledger/http/strictjson"
	"flagledger/queries"
)

type versionEntry struct {
	Version   int64        `json:"version" example:"7"`
	Timestamp recordedTime `json:"timestamp" doc:"When the store recorded it. As at it includes the version"`
	Action    string       `json:"action" doc:"As in the history" example:"enabled"`
	UserID    string       `json:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	UserName  string       `json:"userName" example:"Ada"`
	Reason    string       `json:"reason" doc:"From X-Change-Reason" example:"launch day"`
}

func showVersion(e queries.HistoryEntry) versionEntry {
	shown := showEntry(e)
	return versionEntry{shown.Version, recordedTime(e.Recorded), shown.Action, shown.UserID, shown.UserName, shown.Reason}
}

// wholeFlag is a flag in all environments, which bears no mark of the call's.
type wholeFlag struct {
	ID           string                       `json:"id" example:"0198c5a1-5b7e-7d10-a3f2-8c4e6b0d9f31"`
	Key          string                       `json:"key" example:"new-checkout"`
	Name         string                       `json:"name" example:"New checkout"`
	Type         string                       `json:"type" enum:"boolean,string,number,json"`
	DefaultValue value                        `json:"defaultValue" example:"false"`
	Description  string                       `json:"description" example:"The checkout of one page"`
	Tags         []string                     `json:"tags" example:"[\"web\"]"`
	ProjectID    *string                      `json:"projectId" nullable:"true" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
	Status       string                       `json:"status" enum:"active,inactive,archived" example:"active"`
	Version      uint64                       `json:"version" example:"7"`
	CreatedAt    timestamp                    `json:"createdAt"`
	UpdatedAt    timestamp                    `json:"updatedAt"`
	Variations   []variationBody              `json:"variations"`
	Environments map[string]flagInEnvironment `json:"environments" doc:"By the names of then"`
}

type flagInEnvironment struct {
	Enabled     bool             `json:"enabled" example:"true"`
	Rules       []ruleBody       `json:"rules"`
	Fallthrough fallthroughServe `json:"fallthrough"`
}

func showWholeFlag(f state.Flag, environments []events.EnvironmentRef) wholeFlag {
	one := showState(f, "")
	whole := wholeFlag{
		ID: one.ID, Key: one.Key, Name: one.Name, Type: one.Type, DefaultValue: one.DefaultValue, Description: one.Description, Tags: one.Tags, ProjectID: one.ProjectID,
		Status: one.Status, Version: one.Version, CreatedAt: one.CreatedAt, UpdatedAt: one.UpdatedAt, Variations: one.Variations, Environments: map[string]flagInEnvironment{},
	}
	for _, e := range environments {
		rules := showRules(f.Version, f.Rules[e.ID], f.FallthroughIn(e.ID)).Body
		whole.Environments[e.Name] = flagInEnvironment{f.Enabled[e.ID], rules.Rules, rules.Fallthrough}
	}
	return whole
}

// orNull is a member that may be null.
type orNull[T any] struct{ value *T }

// MarshalJSON implements json.Marshaler.
func (o orNull[T]) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := strictjson.Write(&b, o.value)
	return b.Bytes(), err
}

// Schema implements huma.SchemaProvider.
func (orNull[T]) Schema(r huma.Registry) *huma.Schema {
	schema := *r.SchemaFromRef(r.Schema(reflect.TypeFor[T](), true, "").Ref)
	schema.Nullable = true
	return &schema
}

type versionBody struct {
	Version   uint64            `json:"version" example:"7"`
	Timestamp recordedTime      `json:"timestamp" doc:"When the store recorded the version. As at it includes the version"`
	Flag      orNull[wholeFlag] `json:"flag" doc:"In all environments of then; null for the version that deleted it"`
}

// FlagVersion is what the answer to a version of a flag shows of a state, with the environments of then. The command line prints the same.
func FlagVersion(f state.Flag, environments []events.EnvironmentRef) []byte {
	var whole *wholeFlag
	if f.Exists {
		whole = new(showWholeFlag(f, environments))
	}
	return asJSON(versionBody{uint64(f.Version), recordedTime(f.Recorded), orNull[wholeFlag]{whole}})
}

type changeBody struct {
	Field       string  `json:"field" doc:"As in the history" example:"name"`
	Environment *string `json:"environment" nullable:"true" doc:"null for the whole flag" example:"production"`
	From        value   `json:"from" example:"\"Checkout\""`
	To          value   `json:"to" example:"\"New checkout\""`
}

type diffBody struct {
	From    uint64       `json:"from" doc:"The version that the flag had then" example:"3"`
	To      uint64       `json:"to" example:"7"`
	Changes []changeBody `json:"changes"`
	Patch   []patchBody  `json:"patch" doc:"RFC 6902: makes of the flag of one version, as /versions/{version} shows it, that of the other. Where it would be longer than the flag, it replaces all"`
}

type patchBody struct {
	Op    string `json:"op" enum:"add,remove,replace,move,copy,test" example:"replace"`
	Path  string `json:"path" example:"/name"`
	From  string `json:"from,omitzero" example:"/tags/0"`
	Value value  `json:"value,omitzero" example:"\"New checkout\""`
}

// VersionsPath names a flag in all environments.
type VersionsPath struct {
	TenantInput
	Environment string `header:"X-Environment" doc:"Must be one of the tenant's; the answer is of all environments"`
	Key         string `path:"flagKey" example:"new-checkout"`
}

func (a *API) addVersions() {
	const tag, path = "Flags", "/api/v1/flags/{flagKey}"
	register(a, readFlags, operation("GET", path+"/versions", "list-flag-versions", tag, "The versions of a flag's key, newest first"),
		func(ctx context.Context, in *struct {
			VersionsPath
			PageInput
		}) (*listOutput[versionEntry], error) {
			list, err := a.Queries.History(ctx, principalOf(ctx).tenant.ID(), in.Key, queries.HistoryFilter{}, in.page())
			return listed(ctx, in.PageInput, list, err, showVersion)
		})
	register(a, readFlags, operation("GET", path+"/versions/{version}", "get-flag-version", tag, "A flag as it was at a version, in all environments"),
		func(ctx context.Context, in *struct {
			VersionsPath
			Version int64 `path:"version" minimum:"1" example:"7"`
		}) (*struct{ Body versionBody }, error) {
			f, whole, err := a.wholeFlagAt(ctx, in.Key, queries.Moment{Version: events.Revision(in.Version)})
			if err != nil {
				return nil, err
			}
			return &struct{ Body versionBody }{versionBody{uint64(f.Version), recordedTime(f.Recorded), orNull[wholeFlag]{whole}}}, nil
		})
	register(a, readFlags, operation("GET", path+"/diff", "compare-flag-versions", tag, "What changed of a flag between two versions or times"),
		func(ctx context.Context, in *struct {
			VersionsPath
			From string `query:"from" required:"true" doc:"A version, or a time of RFC 3339 that is past" example:"3"`
			To   string `query:"to" required:"true" doc:"Likewise" example:"7"`
		}) (*struct{ Body diffBody }, error) {
			wrong := map[string]string{}
			from, to := a.momentNamed("from", in.From, wrong), a.momentNamed("to", in.To, wrong)
			if len(wrong) > 0 {
				return nil, invalid(wrong)
			}
			_, before, err := a.wholeFlagAt(ctx, in.Key, from)
			if err != nil {
				return nil, err
			}
			_, after, err := a.wholeFlagAt(ctx, in.Key, to)
			if err != nil {
				return nil, err
			}
			if before == nil || after == nil {
				return nil, queries.ErrNotFound
			}
			body, err := compareFlags(*before, *after)
			return &struct{ Body diffBody }{body}, err
		})
}

// wholeFlagAt reads a flag as it was, in all environments of then; it is nil where it was deleted.
func (a *API) wholeFlagAt(ctx context.Context, key string, m queries.Moment) (f state.Flag, whole *wholeFlag, err error) {
	tenantID := principalOf(ctx).tenant.ID()
	if f, err = a.Queries.FlagStateAt(ctx, tenantID, key, m); err != nil || !f.Exists {
		return f, nil, err
	}
	at := m.At
	if m.Version > 0 {
		at = f.Recorded
	}
	environments, err := a.Queries.EnvironmentsAt(ctx, tenantID, at)
	if err != nil {
		return f, nil, err
	}
	return f, new(showWholeFlag(f, environments)), nil
}

// momentNamed reads a version or a time, and notes what is wrong with it.
func (a *API) momentNamed(name, text string, wrong map[string]string) queries.Moment {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return queries.Moment{Version: events.Revision(n)}
	}
	at, readable := rules.ParseTime(text)
	switch {
	case !readable:
		wrong[name] = "must be a version, or a time of RFC 3339"
	case at.After(a.Now()):
		wrong[name] = "must not be in the future"
	}
	return queries.Moment{At: at}
}

// smallPatch is the size from which a patch that is longer than the flag replaces the whole flag instead: each value of a list of thousands that shifts is a
// step with a long path.
const smallPatch = 64 << 10

// compareFlags tells what differs between two versions.
func compareFlags(before, after wholeFlag) (body diffBody, err error) {
	body = diffBody{From: before.Version, To: after.Version, Changes: []changeBody{}, Patch: []patchBody{}}
	texts := [2][]byte{asJSON(before), asJSON(after)}
	patch, err := jsondiff.CompareJSON(texts[0], texts[1], jsondiff.UnmarshalFunc(unmarshalExactly))
	if err != nil {
		return body, err
	}
	written, err := json.Marshal(patch)
	switch {
	case err != nil || len(patch) == 0:
	case len(written) > max(smallPatch, len(texts[1])):
		body.Patch = []patchBody{{Op: "replace", Value: texts[1]}}
	default:
		err = strictjson.Read(written, &body.Patch)
	}
	body.add("id", nil, before.ID, after.ID)
	body.add("name", nil, before.Name, after.Name)
	body.add("type", nil, before.Type, after.Type)
	body.add("defaultValue", nil, before.DefaultValue, after.DefaultValue)
	body.add("description", nil, before.Description, after.Description)
	body.add("tags", nil, before.Tags, after.Tags)
	body.add("projectId", nil, before.ProjectID, after.ProjectID)
	body.add("status", nil, before.Status, after.Status)
	body.compareLists("variations", nil, byID(before.Variations, variationID), byID(after.Variations, variationID))
	names := maps.Clone(before.Environments)
	maps.Copy(names, after.Environments)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, to := before.Environments[name], after.Environments[name]
		body.add("enabled", &name, from.Enabled, to.Enabled)
		body.compareLists("rules", &name, byID(from.Rules, ruleID), byID(to.Rules, ruleID))
		body.add("fallthrough", &name, from.Fallthrough, to.Fallthrough)
	}
	return body, err
}

// add adds a field unless it is the same in both.
func (d *diffBody) add(field string, environment *string, from, to any) {
	if a, b := asJSON(from), asJSON(to); !bytes.Equal(a, b) {
		d.Changes = append(d.Changes, changeBody{field, environment, a, b})
	}
}

// listOf is a list by id, and the ids in its order.
type listOf struct {
	ids []string
	by  map[string]any
}

func byID[T any](list []T, id func(T) string) listOf {
	l := listOf{ids: []string{}, by: map[string]any{}}
	for _, element := range list {
		l.ids = append(l.ids, id(element))
		l.by[id(element)] = element
	}
	return l
}

func variationID(v variationBody) string { return v.ID }
func ruleID(r ruleBody) string           { return r.ID }

// compareLists adds each element that came, went or changed, whole, and their order where others come in between or it changed.
func (d *diffBody) compareLists(field string, environment *string, from, to listOf) {
	for _, id := range from.ids {
		d.add(field+"."+id, environment, from.by[id], to.by[id])
	}
	for _, id := range to.ids {
		if from.by[id] == nil {
			d.add(field+"."+id, environment, nil, to.by[id])
		}
	}
	d.add(field+".order", environment, from.ids, to.ids)
}

// asJSON is what an answer shows of a value that it can show.
func asJSON(v any) []byte {
	var b bytes.Buffer
	if err := strictjson.Write(&b, v); err != nil {
		panic(err) // the types are part of the program
	}
	return b.Bytes()
}

// unmarshalExactly keeps numbers as they are written.
func unmarshalExactly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}
