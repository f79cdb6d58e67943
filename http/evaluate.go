package http

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"flagledger/events"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

const (
	evaluateRoute     = "/api/v1/flags/{flagKey}/evaluate"
	evaluateManyRoute = "/api/v1/flags/evaluate"
)

var (
	evaluateAccess     = access{who: viewer, scope: events.FlagsEvaluate, requireTenant: true, unverified: true}
	evaluateManyAccess = access{who: viewer, scope: events.FlagsEvaluate, unverified: true}
)

const (
	// maxFlagKeys bounds the flags that a call can name.
	maxFlagKeys = 1000
	// maxEvaluating is the longest that evaluating many flags for a call may take: thousands take milliseconds.
	maxEvaluating = 5 * time.Second
)

// Evaluation handlers bypass huma for speed. This file parses and writes their bodies, and documents them.

// ContextBody is whom flags are evaluated for, and where.
type ContextBody struct {
	TargetingKey string         `json:"targetingKey,omitempty" doc:"The unit that splits by weight are bucketed by" example:"user-42"`
	Attributes   map[string]any `json:"attributes,omitempty" doc:"What rules ask about. Numbers are compared exactly." example:"{\"plan\":\"pro\",\"company\":{\"id\":\"c-7\",\"seats\":12}}"`
	Environment  string         `json:"environment,omitempty" doc:"Goes before X-Environment; production without either" example:"production"`
}

type evaluateManyBody struct {
	ContextBody
	FlagKeys []string `json:"flagKeys,omitempty" maxItems:"1000" doc:"The flags to evaluate; all of the tenant without it" example:"[\"new-checkout\",\"page-size\"]"`
}

type evaluationBody struct {
	Enabled       bool             `json:"enabled" example:"true"`
	Value         value            `json:"value"`
	Reason        string           `json:"reason" enum:"OFF,ARCHIVED,RULE_MATCH,FALLTHROUGH" example:"RULE_MATCH"`
	VariationID   *string          `json:"variationId" nullable:"true" doc:"null where no variation is served" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	VariationName *string          `json:"variationName" nullable:"true" example:"on"`
	RuleID        *string          `json:"ruleId" nullable:"true" doc:"null where no rule matched" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
	FlagVersion   uint64           `json:"flagVersion" doc:"The number of the flag's last change" example:"7"`
	Explanation   *explanationBody `json:"explanation,omitempty" doc:"With explain=true, and of rules that are not saved, alone"`
}

type evaluationsBody struct {
	Flags  map[string]evaluationBody  `json:"flags" doc:"By key, in the order of the keys"`
	Errors map[string]evaluationError `json:"errors,omitempty" doc:"Flags that could not be evaluated, by key: each says what a call for the flag alone would answer"`
}

// evaluationError is why one of many flags could not be evaluated.
type evaluationError struct {
	Status int               `json:"status" doc:"404 for a key that no flag has, 422 where a split has nothing to bucket by" example:"422"`
	Detail string            `json:"detail" example:"validation failed"`
	Errors map[string]string `json:"errors,omitempty" doc:"What is wrong, by field" example:"{\"targetingKey\":\"is required: the flag splits its traffic by it\"}"`
}

// readEvaluation finds out who makes an evaluation and where, and reads its body, which the caller releases.
func (a *API) readEvaluation(
	r *http.Request, need access, read func(*evaluationRequest) error, schema *huma.Schema,
) (*principal, *evaluationRequest, error) {
	p, e, err := a.admitEvaluation(r, need, read, schema)
	if err != nil {
		return nil, nil, err
	}
	if err := p.selectEnvironment(e.environmentOf(r)); err != nil {
		e.release()
		return nil, nil, err
	}
	return p, e, nil
}

// admitEvaluation is readEvaluation without finding the environment.
func (a *API) admitEvaluation(
	r *http.Request, need access, read func(*evaluationRequest) error, schema *huma.Schema,
) (*principal, *evaluationRequest, error) {
	p, err := a.admit(r, need, "")
	if err != nil {
		return nil, nil, err
	}
	if err := checkMediaType(r); err != nil {
		return nil, nil, err
	}
	e, err := a.readEvaluationBody(r, p)
	if err != nil {
		return nil, nil, err
	}
	if err := a.decodeEvaluation(e, read, schema); err != nil {
		e.release()
		return nil, nil, err
	}
	return p, e, nil
}

// environmentOf is the name of the environment that an evaluation is about, empty for production.
func (e *evaluationRequest) environmentOf(r *http.Request) string {
	if e.environment != "" {
		return e.environment
	}
	return r.Header.Get(environmentHeader)
}

func (a *API) decodeEvaluation(e *evaluationRequest, read func(*evaluationRequest) error, schema *huma.Schema) error {
	err := e.decode(read)
	if err == nil && len(e.flagKeys) > maxFlagKeys {
		return invalid(map[string]string{"flagKeys": fmt.Sprintf("must be at most %s keys", events.CountText(maxFlagKeys))})
	}
	if first, ok := errors.AsType[strictjson.FieldError](err); ok {
		return a.allWrongFields(e.data, first, schema)
	}
	if err != nil {
		return newProblem(http.StatusBadRequest, err.Error())
	}
	return nil
}

// allWrongFields says all that is wrong with the members of a body. Reading it stopped at the first.
func (a *API) allWrongFields(data []byte, first strictjson.FieldError, schema *huma.Schema) *problem {
	_, wrong, err := strictjson.Fit(data, schema, a.huma.OpenAPI().Components.Schemas)
	if err != nil {
		return problemOfBody(err)
	}
	if len(wrong) == 0 {
		return invalid(map[string]string{first.Field: first.Text})
	}
	return invalid(wrong)
}

func readEvaluate(e *evaluationRequest) error { return e.Object(e.member) }

func readEvaluateMany(e *evaluationRequest) error {
	return e.Object(func(name string) error {
		if name != "flagKeys" {
			return e.member(name)
		}
		return e.Strings(&e.flagKeys)
	})
}

func (e *evaluationRequest) member(name string) error {
	switch name {
	case "targetingKey":
		return e.String(&e.TargetingKey)
	case "attributes":
		return e.attributes()
	case "environment":
		return e.String(&e.environment)
	default:
		return e.Refuse("unexpected property")
	}
}

// evaluate answers what a flag serves.
func (a *API) evaluate(w http.ResponseWriter, r *http.Request) {
	if err := a.evaluateOne(w, r, readEvaluate, a.evaluateSchema); err != nil {
		writeProblem(w, r, problemOf(r.Context(), err))
	}
}

func (a *API) evaluateOne(
	w http.ResponseWriter, r *http.Request, read func(*evaluationRequest) error, schema *huma.Schema,
) error {
	preview := false
	if r.URL.RawQuery != "" {
		asked, err := readEvaluationQuery(r.URL, a.Now())
		if err != nil || asked.past || asked.explain {
			return a.evaluateQuery(w, r, asked, err, read, schema)
		}
		preview = asked.preview
	}
	p, e, err := a.readEvaluation(r, evaluateAccess, read, schema)
	if err != nil {
		return err
	}
	defer e.release()
	if preview {
		if err := p.requireFlagsRead(); err != nil {
			return err
		}
	}
	key := pathKey(r, "flagKey")
	result, err := a.evaluateFlag(r, p, key, e)
	if err != nil {
		return err
	}
	if !preview {
		a.countOne(p, key, &result)
	}
	out := newOutput(w)
	defer out.release()
	out.evaluation(&result)
	e.leaveWorkSlot()
	out.send()
	return nil
}

// evaluateFlag evaluates a flag. Where that takes long it begins again when it has a slot, so that others do not wait
// for it.
func (a *API) evaluateFlag(r *http.Request, p *principal, key string, e *evaluationRequest) (snapshot.Result, error) {
	result, err := queries.EvaluateShort(p.tenant, p.environment, key, &e.Context)
	if err == nil || !errors.Is(err, snapshot.ErrTooLarge) {
		return result, err
	}
	if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
		return result, err
	}
	return queries.Evaluate(p.tenant, p.environment, key, &e.Context)
}

// pathKey is the key of a flag in a path, empty where it cannot be one.
func pathKey(r *http.Request, name string) string {
	key := chi.URLParam(r, name)
	if r.URL.RawPath == "" { // the router has seen the decoded path
		return key
	}
	key, err := url.PathUnescape(key)
	if err != nil {
		return ""
	}
	return key
}

// documentEvaluate describes the operations of this file.
func (a *API) documentEvaluate() {
	one := operation("POST", evaluateRoute, "evaluate-flag", "Evaluation", "What a flag serves")
	one.Description = "Answered from memory: it works while the event store and the database are down. Where the flag " +
		"splits its traffic and the unit " +
		"that it splits by is missing or empty, the answer is 422 and names `targetingKey`, or the attribute as " +
		"`attributes.company`. It names `attributes` where the context is too large to be compared with the " +
		"flag's rules in time."
	one.Description += " With `at` or `version` it is what the flag served then: see X-Evaluated-At. That, as " +
		"`explain`, asks the database, and counts as no evaluation; a machine " +
		"needs the scope `flags:read` for it too."
	one.Description += " " + previewText
	one.Parameters = []*huma.Param{
		flagKeyParam(),
		tenantParam(true),
		environmentParam(),
		atParam(),
		versionParam(),
		explainParam(),
		previewParam(),
	}
	one.Errors = []int{http.StatusUnprocessableEntity}
	a.evaluateSchema = a.document(&one, evaluateAccess, ContextBody{}, evaluationBody{})
	one.Responses["200"].Headers = evaluatedAtDocument()
	old := legacyOperation("POST", legacyEvaluateRoute, "legacy-evaluate-flag", one.Summary)
	old.Parameters, old.Errors = one.Parameters, one.Errors
	a.legacyEvaluateSchema = a.document(&old, evaluateAccess, legacyContextBody{}, evaluationBody{})
	old.Responses["200"].Headers = one.Responses["200"].Headers

	many := operation("POST", evaluateManyRoute, "evaluate-flags", "Evaluation", "What many flags serve")
	many.Description = "Evaluates the flags that `flagKeys` names, or all of the tenant. A flag that cannot be " +
		"evaluated does not spoil the others: " +
		"`errors`, which is there only then, says of each what a call for it alone would answer: 422 for a split whose " +
		"unit is missing, 404 for a key in " +
		"`flagKeys` that no flag has. Where rules are so costly that all of them together take too long, it breaks off " +
		"with 503: name fewer. Archived flags are among the answers, deleted ones are not."
	many.Description += " With `at` they are the flags of then and what they served: see X-Evaluated-At. That asks the " +
		"database, for each flag that has changed since, and counts as no " +
		"evaluation; a machine needs the scope `flags:read` for it too."
	many.Description += " " + previewText
	many.Parameters = []*huma.Param{tenantParam(false), environmentParam(), atParam(), previewParam()}
	many.Errors = []int{http.StatusUnprocessableEntity}
	a.evaluateManySchema = a.document(&many, evaluateManyAccess, evaluateManyBody{}, evaluationsBody{})
	many.Responses["200"].Headers = one.Responses["200"].Headers
}

func flagKeyParam() *huma.Param {
	return &huma.Param{
		Name:     "flagKey",
		In:       "path",
		Required: true,
		Schema:   &huma.Schema{Type: huma.TypeString},
		Example:  "new-checkout",
	}
}

func atParam() *huma.Param {
	return &huma.Param{
		Name:        "at",
		In:          "query",
		Schema:      &huma.Schema{Type: huma.TypeString, Format: "date-time"},
		Description: "A time that is past by the store's clock: what was served then, with the environments of then",
	}
}

func versionParam() *huma.Param {
	return &huma.Param{
		Name:        "version",
		In:          "query",
		Schema:      &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0)},
		Description: "A version of the flag: what was served once the flag had it. Goes without at",
	}
}

func evaluatedAtDocument() map[string]*huma.Param {
	return map[string]*huma.Param{evaluatedAtHeader: {
		Schema: &huma.Schema{
			Type:   huma.TypeString,
			Format: "date-time",
		},
		Description: "Of an evaluation of the past alone: the time that was asked for, or that at which the flag got the " +
			"version",
	}}
}

func explainParam() *huma.Param {
	return &huma.Param{
		Name:        "explain",
		In:          "query",
		Schema:      &huma.Schema{Type: huma.TypeBoolean},
		Description: "Whether to say why: each step, rule and condition that was asked, and how a split chose",
	}
}

const previewText = "With `preview=true` the answer is the same, also from memory, and counts as no use of a flag " +
	"and no evaluation: for whoever only looks at what " +
	"somebody would get. A machine needs the scope `flags:read` for it too."

func previewParam() *huma.Param {
	return &huma.Param{
		Name:        "preview",
		In:          "query",
		Schema:      &huma.Schema{Type: huma.TypeBoolean},
		Description: "Whether the answer is only to be shown: nothing is counted",
	}
}

func tenantParam(required bool) *huma.Param {
	p := &huma.Param{
		Name:        "X-Tenant-ID",
		In:          "header",
		Required:    required,
		Schema:      &huma.Schema{Type: huma.TypeString},
		Description: "The tenant of the call",
	}
	if !required {
		p.Description += "; without it the machine's, or the caller's canonical tenant"
	}
	return p
}

func environmentParam() *huma.Param {
	return &huma.Param{
		Name:        "X-Environment",
		In:          "header",
		Schema:      &huma.Schema{Type: huma.TypeString},
		Description: "The environment of the call: production without it",
	}
}

// document adds an operation that is no huma operation, from examples of its bodies, and returns the schema of what it
// reads.
func (a *API) document(op *huma.Operation, need access, in, out any) *huma.Schema {
	doc := a.huma.OpenAPI()
	content := func(v any) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{
			"application/json": {Schema: doc.Components.Schemas.Schema(reflect.TypeOf(v), true, "")},
		}
	}
	op.Security = need.security()
	op.RequestBody = &huma.RequestBody{Required: true, Content: content(in)}
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: content(out)}}
	doc.AddOperation(op)
	return op.RequestBody.Content["application/json"].Schema
}
