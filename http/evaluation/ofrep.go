package evaluation

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/queries"
)

var ofrepAccess = rest.Access{Who: rest.Viewer, Scope: events.FlagsEvaluate, Unverified: true, BrowserKeys: true}

// OFREPContext is the context of an evaluation.
type OFREPContext struct {
	TargetingKey string `json:"targetingKey,omitempty" doc:"The unit that weighted splits are bucketed by. Required if a flag splits its traffic by it." example:"user-42"`

	_ struct{} `additionalProperties:"true"`
}

type ofrepBody struct {
	Context OFREPContext `json:"context" doc:"Members other than targetingKey are attributes, which rules test"`

	_ struct{} `additionalProperties:"true"`
}

// OFREPMetadata is the origin of a value.
type OFREPMetadata struct {
	FlagVersion uint64 `json:"flagVersion" doc:"The number of the flag's last change" example:"7"`
	Version     string `json:"version,omitempty" doc:"The revision of the answer, for revision of POST /api/v1/flags/{flagKey}/evaluate" example:"7"`
	FlagSetID   string `json:"flagSetId,omitempty" doc:"The tenant's id and the environment's name. Of all flags it is in the metadata of the whole" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13/production"`
	VariationID string `json:"variationId,omitempty" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	RuleID      string `json:"ruleId,omitempty" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
	// Prerequisite is there for a flag that is off because of it.
	Prerequisite string `json:"prerequisite,omitempty" doc:"The key of the required flag that keeps the flag off" example:"payments"`
}

type ofrepEvaluation struct {
	Key      string        `json:"key" example:"new-checkout"`
	Value    rest.Value    `json:"value,omitempty" doc:"Absent if the flag is off and its offServes is code: the default in the application's code is used"`
	Reason   string        `json:"reason" enum:"STATIC,TARGETING_MATCH,SPLIT,DEFAULT,DISABLED" doc:"DISABLED comes with the flag's default value; some clients ignore it and use the default in their code" example:"TARGETING_MATCH"`
	Variant  string        `json:"variant,omitempty" doc:"The name of the variation that is served" example:"on"`
	Metadata OFREPMetadata `json:"metadata"`
}

type ofrepEvaluations struct {
	Metadata     ofrepSet      `json:"metadata"`
	Flags        []OFREPFlag   `json:"flags"`
	EventStreams []OFREPStream `json:"eventStreams"`
}

type ofrepSet struct {
	FlagSetID string `json:"flagSetId" doc:"The tenant's id and the environment's name" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13/production"`
}

// OFREPStream is a stream of flag changes.
type OFREPStream struct {
	Type string `json:"type" enum:"sse"`
	URL  string `json:"url" format:"uri" doc:"Opens the stream of changes without headers, and is valid until the call's token or browser key expires, or for a day with a server key. Treat it as a secret, like the token." example:"https://flags.example.com/api/v1/flags/stream?ticket=eyJhbGciOiJIUzI1NiJ9.eyJ0ZW5hbnRfaWQiOiIuLi4ifQ.c2ln"`
}

// OFREPFlag documents an ofrepEvaluation or an OFREPFailure.
type OFREPFlag struct{}

// Schema implements huma.SchemaProvider.
func (OFREPFlag) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf: []*huma.Schema{
			r.Schema(reflect.TypeFor[ofrepEvaluation](), true, ""),
			r.Schema(reflect.TypeFor[rest.OFREPFailure](), true, ""),
		},
	}
}

// ofrepEvaluate answers with what a flag serves.
func (a *API) ofrepEvaluate(w http.ResponseWriter, r *http.Request) {
	key := pathKey(r, "key")
	p, e, err := a.readOFREPEvaluation(r)
	if err != nil {
		rest.WriteOFREP(w, r, key, err)
		return
	}
	defer e.release()
	flag, result, err := a.evaluateFlag(r, p, key, e)
	if err == nil && result.Reason == evaluation.Archived {
		err = queries.ErrNotFound
	}
	if err != nil {
		rest.WriteOFREP(w, r, key, err)
		return
	}
	a.countOne(p, flag, &result, &e.Context)
	out := newOutput(w)
	defer out.release()
	out.ofrep(key, flag, &result, p, true)
	e.leaveWorkSlot()
	out.send()
}

// catchUpTime is the longest that a call waits for a change that the client received from another node.
const catchUpTime = time.Second

// catchUp waits until this node has applied the change in flagConfigEtag, which the client received from another node's
// stream.
func (a *API) catchUp(r *http.Request, p *rest.Principal) {
	if r.URL.RawQuery == "" {
		return
	}
	etag := r.URL.Query().Get("flagConfigEtag")
	if etag == "" {
		return
	}
	ids, err := a.StreamIDs(p.Tenant.ID())
	if err != nil { // answer without waiting
		return
	}
	if position, ok := ids.Position(etag); ok && a.Changes.Position().Compare(position) < 0 {
		ctx, cancel := context.WithTimeout(r.Context(), catchUpTime)
		defer cancel()
		a.Changes.Await(ctx, p.Tenant, position)
	}
}

// checkOFREPQuery refuses unknown query parameters, such as at and version of our own evaluations: ignoring them would
// return current values for a historical query.
func checkOFREPQuery(u *url.URL, taken []string) error {
	if u.RawQuery == "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(u.Query())) {
		if !slices.Contains(taken, name) {
			return rest.NewProblem(http.StatusBadRequest, rest.UnknownParameter+" "+name)
		}
	}
	return nil
}

// readOFREPEvaluation admits the caller of an evaluation, checks its query and reads its body. The caller must release
// the body.
func (a *API) readOFREPEvaluation(r *http.Request, parameters ...string) (*rest.Principal, *evaluationRequest, error) {
	p, err := a.Admit(r, ofrepAccess, "")
	if err != nil {
		return nil, nil, err
	}
	if err := cmp.Or(checkKeyQuery(p, r.URL), checkOFREPQuery(r.URL, parameters)); err != nil {
		return nil, nil, err
	}
	if err := rest.CheckMediaType(r); err != nil {
		return nil, nil, err
	}
	e, err := a.readEvaluationBody(r, p)
	if unread, ok := errors.AsType[*rest.Problem](err); ok && unread.Status == http.StatusBadRequest {
		return nil, nil, rest.OFREPError{Code: rest.OFREPParseError, Problem: unread}
	}
	if err != nil {
		return nil, nil, err
	}
	err = e.decode(readOFREP)
	if wrong, ok := errors.AsType[strictjson.FieldError](err); ok {
		err = rest.OFREPError{Code: rest.OFREPInvalidContext, Problem: rest.NewProblem(http.StatusBadRequest, wrong.Error())}
	} else if err != nil {
		err = rest.OFREPError{Code: rest.OFREPParseError, Problem: rest.NewProblem(http.StatusBadRequest, err.Error())}
	} else if err = a.readSignedContext(r, p, e); err == nil {
		err = p.SelectEnvironment(r.Header.Get(rest.EnvironmentHeader))
	} else if wrong, ok := errors.AsType[strictjson.FieldError](err); ok {
		err = rest.OFREPError{Code: rest.OFREPInvalidContext, Problem: rest.NewProblem(http.StatusBadRequest, wrong.Error())}
	}
	if err != nil {
		e.release()
		return nil, nil, err
	}
	return p, e, nil
}

// readOFREP reads a body. It skips unknown members, as the protocol allows them.
func readOFREP(e *evaluationRequest) error {
	sent := false
	err := e.Object(func(name string) error {
		if name != "context" {
			return e.SkipValue()
		}
		sent = true
		e.Attributes = e.members
		return e.Object(func(name string) (err error) {
			if name == "targetingKey" {
				return e.String(&e.TargetingKey)
			}
			e.Attributes[name], err = e.value()
			return err
		})
	})
	if err == nil && !sent {
		return strictjson.FieldError{Field: "context", Text: "is required"}
	}
	return err
}

// ofrepReason returns the OpenFeature reason of a result.
func ofrepReason(r *evaluation.Result) string {
	switch {
	case r.Reason == evaluation.Off, r.Reason == evaluation.PrerequisiteFailed:
		return "DISABLED"
	case r.Split:
		return "SPLIT"
	case r.Reason == evaluation.RuleMatch:
		return "TARGETING_MATCH"
	case r.HasRules:
		return "DEFAULT"
	default:
		return "STATIC"
	}
}

// ofrep appends an ofrepEvaluation, which names its set of flags if it is alone.
func (o *output) ofrep(key string, flag *snapshot.Flag, r *evaluation.Result, p *rest.Principal, alone bool) {
	o.text(`{"key":`)
	o.quote(key)
	if r.Enabled || flag.State().OffServes != events.OffServesCode {
		o.text(`,"value":`)
		o.b = append(o.b, r.Value...)
	}
	o.text(`,"reason":"`)
	o.text(ofrepReason(r))
	o.text(`"`)
	if r.VariationName != "" {
		o.text(`,"variant":`)
		o.quote(r.VariationName)
	}
	o.text(`,"metadata":{"flagVersion":`)
	o.b = strconv.AppendUint(o.b, uint64(r.Version), 10)
	if !r.ChangedAt.IsZero() {
		o.text(`,"version":`)
		o.revision(r, &p.Environment)
	}
	if alone {
		o.text(",")
		o.flagSet(p)
	}
	if r.VariationID != "" {
		o.text(`,"variationId":`)
		o.quote(r.VariationID)
	}
	if r.RuleID != "" {
		o.text(`,"ruleId":`)
		o.quote(r.RuleID)
	}
	if r.Prerequisite != "" {
		o.text(`,"prerequisite":`)
		o.quote(r.Prerequisite)
	}
	o.text("}}")
}

// flagSet appends the member that names the flags of a tenant in an environment.
func (o *output) flagSet(p *rest.Principal) {
	o.text(`"flagSetId":"`)
	o.text(p.Tenant.ID())
	o.text("/")
	o.text(p.Environment.Name) // of letters that need no escape
	o.text(`"`)
}

// documentOFREP describes the operations of this file.
func (a *API) documentOFREP() {
	parameters := []*huma.Param{tenantParam(true), environmentParam(), signedContextParam()}
	const common = "OpenFeature's remote evaluation protocol (OFREP) 0.3: point an OpenFeature SDK's OFREP provider at " +
		"this service, with the header `Authorization`. " +
		"`targetingKey` is required only if a flag splits its traffic by it. "
	key := &huma.Param{
		Name:     "key",
		In:       "path",
		Required: true,
		Schema:   &huma.Schema{Type: huma.TypeString},
		Example:  "new-checkout",
	}
	one := rest.Operation("POST", rest.OFREPRoute, "ofrep-evaluate-flag", "OFREP", "What a flag serves, for OpenFeature")
	one.Description = common + "Archived flags are 404, like flags that do not exist."
	one.Parameters = append([]*huma.Param{key}, parameters...)
	a.document(&one, ofrepAccess, ofrepBody{}, ofrepEvaluation{})

	text := &huma.Schema{Type: huma.TypeString}
	many := rest.Operation("POST", rest.OFREPManyRoute, "ofrep-evaluate-flags", "OFREP",
		"What all flags serve, for OpenFeature")
	many.Description = common + "The flags are in the order of their keys, without archived ones. A flag that cannot be " +
		"evaluated has `errorCode` and `errorDetails` in place of a value; the others are not affected. `eventStreams` " +
		"has the URL of the stream of changes. A new token changes the " +
		"ETag, so that clients always get a valid URL."
	many.Parameters = append([]*huma.Param{
		{
			Name:        "If-None-Match",
			In:          "header",
			Schema:      text,
			Description: "The ETags of responses that the client has; the answer is 304 if one of them is still current",
		},
		{
			Name:        "flagConfigEtag",
			In:          "query",
			Schema:      text,
			Description: "The etag of the event that caused the call: the answer waits for that change for one second at most",
		},
		{
			Name:        "flagConfigLastModified",
			In:          "query",
			Schema:      text,
			Description: "Accepted for the protocol, and ignored",
		},
	}, parameters...)
	a.document(&many, ofrepAccess, ofrepBody{}, ofrepEvaluations{})
	many.Responses["200"].Headers = map[string]*huma.Param{"ETag": {Schema: text, Description: "The tag of the whole " +
		"response"}}
	many.Responses["304"] = &huma.Response{Description: "Nothing has changed", Headers: many.Responses["200"].Headers}
}
