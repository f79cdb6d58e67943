package evaluation

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
	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/queries"
)

var (
	legacyEvaluateAccess = rest.Access{
		Who: rest.Viewer, Scope: events.FlagsEvaluate, RequireTenant: true, Unverified: true,
	}
	evaluateAccess = rest.Access{
		Who: rest.Viewer, Scope: events.FlagsEvaluate, RequireTenant: true, Unverified: true, BrowserKeys: true,
	}
	evaluateManyAccess = rest.Access{Who: rest.Viewer, Scope: events.FlagsEvaluate, Unverified: true, BrowserKeys: true}
)

const (
	// maxFlagKeys limits the flags that a call can name.
	maxFlagKeys = 1000
	// maxEvaluating limits the time of evaluating many flags for a call. Thousands take milliseconds.
	maxEvaluating = 5 * time.Second
)

// Evaluation handlers bypass huma for speed. This file parses and writes their bodies, and documents them.

// ContextBody is the context and the environment of an evaluation.
type ContextBody struct {
	TargetingKey string         `json:"targetingKey,omitempty" doc:"The unit that weighted splits are bucketed by" example:"user-42"`
	Attributes   map[string]any `json:"attributes,omitempty" doc:"The values that rules test. Numbers are compared exactly." example:"{\"plan\":\"pro\",\"company\":{\"id\":\"c-7\",\"seats\":12}}"`
	Environment  string         `json:"environment,omitempty" doc:"Overrides X-Environment; production without either" example:"production"`
}

type evaluateManyBody struct {
	ContextBody
	FlagKeys []string `json:"flagKeys,omitempty" maxItems:"1000" doc:"The flags to evaluate; all of the tenant's by default" example:"[\"new-checkout\",\"page-size\"]"`
}

type evaluationBody struct {
	Enabled       bool             `json:"enabled" example:"true"`
	Value         rest.Value       `json:"value"`
	Reason        string           `json:"reason" enum:"OFF,ARCHIVED,PREREQUISITE_FAILED,RULE_MATCH,FALLTHROUGH" example:"RULE_MATCH"`
	Prerequisite  string           `json:"prerequisite,omitempty" doc:"The key of the required flag that keeps the flag off, if the reason is PREREQUISITE_FAILED" example:"payments"`
	VariationID   *string          `json:"variationId" nullable:"true" doc:"null if no variation is served" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	VariationName *string          `json:"variationName" nullable:"true" example:"on"`
	RuleID        *string          `json:"ruleId" nullable:"true" doc:"null if no rule matched" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
	FlagVersion   uint64           `json:"flagVersion" doc:"The number of the flag's last change" example:"7"`
	Revision      string           `json:"revision,omitempty" doc:"What the answer depends on: with it as revision the same call gets the same answer, however much later. Absent for rules that are not saved" example:"7"`
	Explanation   *explanationBody `json:"explanation,omitempty" doc:"Only with explain=true, and for rules that are not saved"`
}

type evaluationsBody struct {
	Flags  map[string]evaluationBody  `json:"flags" doc:"By key, in the order of the keys"`
	Errors map[string]evaluationError `json:"errors,omitempty" doc:"Flags that could not be evaluated, by key, with the error that a call for the single flag would return"`
}

// evaluationError is the error of one flag among many.
type evaluationError struct {
	Status int               `json:"status" doc:"404 for an unknown key, 422 if a split has nothing to bucket by" example:"422"`
	Detail string            `json:"detail" example:"validation failed"`
	Errors map[string]string `json:"errors,omitempty" doc:"What is wrong, by field" example:"{\"targetingKey\":\"is required: the flag splits its traffic by it\"}"`
}

// readEvaluation admits the caller, reads the body and selects the environment. The caller must release the body.
func (a *API) readEvaluation(
	r *http.Request, need rest.Access, read func(*evaluationRequest) error, schema *huma.Schema,
) (*rest.Principal, *evaluationRequest, error) {
	p, e, err := a.admitEvaluation(r, need, read, schema)
	if err != nil {
		return nil, nil, err
	}
	if err := p.SelectEnvironment(e.environmentOf(r)); err != nil {
		e.release()
		return nil, nil, err
	}
	return p, e, nil
}

// admitEvaluation is readEvaluation without selecting the environment.
func (a *API) admitEvaluation(
	r *http.Request, need rest.Access, read func(*evaluationRequest) error, schema *huma.Schema,
) (*rest.Principal, *evaluationRequest, error) {
	p, err := a.Admit(r, need, "")
	if err != nil {
		return nil, nil, err
	}
	if err := rest.CheckMediaType(r); err != nil {
		return nil, nil, err
	}
	e, err := a.readEvaluationBody(r, p)
	if err != nil {
		return nil, nil, err
	}
	err = a.decodeEvaluation(e, read, schema)
	if err == nil {
		err = a.readSignedContext(r, p, e)
	}
	if wrong, ok := errors.AsType[strictjson.FieldError](err); ok {
		err = rest.Invalid(map[string]string{wrong.Field: wrong.Text})
	}
	if err != nil {
		e.release()
		return nil, nil, err
	}
	return p, e, nil
}

// environmentOf returns the name of the evaluation's environment, or "" for production.
func (e *evaluationRequest) environmentOf(r *http.Request) string {
	if e.environment != "" {
		return e.environment
	}
	return r.Header.Get(rest.EnvironmentHeader)
}

func (a *API) decodeEvaluation(e *evaluationRequest, read func(*evaluationRequest) error, schema *huma.Schema) error {
	err := e.decode(read)
	if err == nil && len(e.flagKeys) > maxFlagKeys {
		return rest.Invalid(map[string]string{"flagKeys": fmt.Sprintf("must be at most %s keys",
			events.CountText(maxFlagKeys))})
	}
	if first, ok := errors.AsType[strictjson.FieldError](err); ok {
		return a.allWrongFields(e.data, first, schema)
	}
	if err != nil {
		return rest.NewProblem(http.StatusBadRequest, err.Error())
	}
	return nil
}

// allWrongFields returns a problem with all wrong members of a body. Reading it stopped at the first.
func (a *API) allWrongFields(data []byte, first strictjson.FieldError, schema *huma.Schema) *rest.Problem {
	_, wrong, err := strictjson.Fit(data, schema, a.Huma.OpenAPI().Components.Schemas)
	if err != nil {
		return rest.ProblemOfBody(err)
	}
	if len(wrong) == 0 {
		return rest.Invalid(map[string]string{first.Field: first.Text})
	}
	return rest.Invalid(wrong)
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
	if err := a.evaluateOne(w, r, evaluateAccess, readEvaluate, a.evaluateSchema); err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
	}
}

func (a *API) evaluateOne(
	w http.ResponseWriter, r *http.Request, need rest.Access, read func(*evaluationRequest) error, schema *huma.Schema,
) error {
	preview := false
	if r.URL.RawQuery != "" {
		query, err := readEvaluationQuery(r.URL, a.Now())
		if err != nil || query.past || query.explain {
			return a.evaluateQuery(w, r, need, query, err, read, schema)
		}
		preview = query.preview
	}
	p, e, err := a.readEvaluation(r, need, read, schema)
	if err != nil {
		return err
	}
	defer e.release()
	if err := checkKeyQuery(p, r.URL); err != nil {
		return err
	}
	if preview {
		if err := p.RequireFlagsRead(); err != nil {
			return err
		}
	}
	key := pathKey(r, "flagKey")
	flag, result, err := a.evaluateFlag(r, p, key, e)
	if err != nil {
		return err
	}
	if !preview {
		a.countOne(p, flag, &result, &e.Context)
	}
	out := newOutput(w)
	defer out.release()
	out.evaluation(&result, &p.Environment)
	e.leaveWorkSlot()
	out.send()
	return nil
}

// evaluateFlag evaluates a flag. If that takes long it starts again once it has a slot, so that other calls do not wait
// for it. Its error is queries.ErrNotFound, one of evaluation.Flag.Evaluate, or a problem.
func (a *API) evaluateFlag(
	r *http.Request, p *rest.Principal, key string, e *evaluationRequest,
) (flag *snapshot.Flag, result evaluation.Result, err error) {
	flag, dependencies, ok := p.Tenant.FlagWithDependencies(key)
	if !ok || !p.Sees(flag) {
		return nil, result, queries.ErrNotFound
	}
	e.Dependencies, e.Environment = dependencies, p.Environment.Name
	result, err = flag.EvaluateShort(p.Environment.ID, &e.Context)
	if err != nil && errors.Is(err, evaluation.ErrTooLarge) {
		if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
			return nil, result, err
		}
		result, err = flag.Evaluate(p.Environment.ID, &e.Context)
	}
	err = hideFromBrowser(p, &result, err)
	return flag, result, err
}

// hideFromBrowser removes what a browser may not know from a result and from the error of an evaluation: the rule, and
// a required flag that it does not see. It returns the error.
func hideFromBrowser(p *rest.Principal, result *evaluation.Result, err error) error {
	if !p.HasBrowserKey() {
		return err
	}
	result.RuleID = ""
	hidden := func(key string) bool {
		required, ok := p.Tenant.Flag(key)
		return key != "" && (!ok || !p.Sees(required))
	}
	if hidden(result.Prerequisite) {
		result.Prerequisite = ""
	}
	if missing, ok := errors.AsType[*evaluation.NoUnitError](err); ok && hidden(missing.FlagKey) {
		return missing.WithoutFlag()
	}
	return err
}

// pathKey returns the flag key in a path, or "" if it is malformed.
func pathKey(r *http.Request, name string) string {
	key := chi.URLParam(r, name)
	if r.URL.RawPath == "" { // the router used the decoded path
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
	one := rest.Operation("POST", rest.EvaluateRoute, "evaluate-flag", "Evaluation", "What a flag serves")
	one.Description = "Answered from memory: it works while the event store and the database are down. If the flag " +
		"splits its traffic and the unit of the split is missing or empty, the answer is 422 and names `targetingKey`, or " +
		"the attribute as `attributes.company`. It names `attributes` if the context is too large to be compared with the " +
		"flag's rules in time."
	one.Description += " With `at`, `version` or `revision` the answer is what the flag served then: see X-Evaluated-At. " +
		"Such calls, and calls with `explain`, query the database and are not counted as evaluations; a machine also " +
		"needs the scope `flags:read`."
	one.Description += " " + previewText
	one.Parameters = []*huma.Param{
		flagKeyParam(),
		tenantParam(false),
		environmentParam(),
		signedContextParam(),
		atParam(),
		versionParam(),
		revisionParam(),
		explainParam(),
		previewParam(),
	}
	one.Errors = []int{http.StatusUnprocessableEntity}
	a.evaluateSchema = a.document(&one, evaluateAccess, ContextBody{}, evaluationBody{})
	one.Responses["200"].Headers = evaluatedAtDocument()
	old := rest.LegacyOperation("POST", rest.LegacyEvaluateRoute, "legacy-evaluate-flag", one.Summary)
	old.Parameters, old.Errors = one.Parameters, one.Errors
	a.legacyEvaluateSchema = a.document(&old, legacyEvaluateAccess, legacyContextBody{}, evaluationBody{})
	old.Responses["200"].Headers = one.Responses["200"].Headers

	many := rest.Operation("POST", rest.EvaluateManyRoute, "evaluate-flags", "Evaluation", "What many flags serve")
	many.Description = "Evaluates the flags that `flagKeys` names, or all flags of the tenant. If a flag cannot be " +
		"evaluated, the others still are, and `errors` holds what a call for the single flag would return: 422 if the " +
		"unit of a split is missing, 404 for an unknown key in `flagKeys`. If the rules together take too long, the " +
		"answer is 503: name fewer flags. Archived flags are included, deleted ones are not."
	many.Description += " With `at` the answer is the flags at that time and what they served: see X-Evaluated-At. Such " +
		"a call queries the database for each flag that has changed since, and is not counted; a machine also needs the " +
		"scope `flags:read`."
	many.Description += " " + previewText
	many.Parameters = []*huma.Param{
		tenantParam(true), environmentParam(), signedContextParam(), atParam(), previewParam(),
	}
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
		Name:   "at",
		In:     "query",
		Schema: &huma.Schema{Type: huma.TypeString, Format: "date-time"},
		Description: "A time that is past by the store's clock: what was served, with the flags and environments at that " +
			"time",
	}
}

func versionParam() *huma.Param {
	return &huma.Param{
		Name:        "version",
		In:          "query",
		Schema:      &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0)},
		Description: "A version of the flag: what was served when the flag got it. Not allowed with at",
	}
}

func revisionParam() *huma.Param {
	return &huma.Param{
		Name:        "revision",
		In:          "query",
		Schema:      &huma.Schema{Type: huma.TypeString},
		Description: "The revision of an earlier answer: what was served then. Not allowed with at or version",
		Example:     "7",
	}
}

func evaluatedAtDocument() map[string]*huma.Param {
	return map[string]*huma.Param{rest.EvaluatedAtHeader: {
		Schema: &huma.Schema{
			Type:   huma.TypeString,
			Format: "date-time",
		},
		Description: "Only for historical evaluations: the requested time, or the time when the flag got the version",
	}}
}

func explainParam() *huma.Param {
	return &huma.Param{
		Name:        "explain",
		In:          "query",
		Schema:      &huma.Schema{Type: huma.TypeBoolean},
		Description: "Whether to explain the result: each step, rule and condition that was tested, and how a split chose",
	}
}

const previewText = "With `preview=true` the answer is the same, also from memory, but is not counted: for looking " +
	"at what a user would get. A machine also needs the scope `flags:read`."

func previewParam() *huma.Param {
	return &huma.Param{
		Name:        "preview",
		In:          "query",
		Schema:      &huma.Schema{Type: huma.TypeBoolean},
		Description: "Whether the answer is only shown: nothing is counted",
	}
}

func tenantParam(hasDefault bool) *huma.Param {
	p := &huma.Param{
		Name:        "X-Tenant-ID",
		In:          "header",
		Schema:      &huma.Schema{Type: huma.TypeString},
		Description: "The tenant of the call; required unless the call has an evaluation key",
	}
	if hasDefault {
		p.Description = "The tenant of the call; the default is the machine's or the key's tenant, or the person's " +
			"canonical tenant"
	}
	return p
}

func environmentParam() *huma.Param {
	return &huma.Param{
		Name:        "X-Environment",
		In:          "header",
		Schema:      &huma.Schema{Type: huma.TypeString},
		Description: "The environment of the call; the default is production",
	}
}

// document documents an operation that huma does not serve, from examples of its bodies. It returns the schema of the
// request body.
func (a *API) document(op *huma.Operation, need rest.Access, in, out any) *huma.Schema {
	doc := a.Huma.OpenAPI()
	content := func(v any) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{
			"application/json": {Schema: doc.Components.Schemas.Schema(reflect.TypeOf(v), true, "")},
		}
	}
	op.Security = need.Security()
	op.RequestBody = &huma.RequestBody{Required: true, Content: content(in)}
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: content(out)}}
	doc.AddOperation(op)
	return op.RequestBody.Content["application/json"].Schema
}
