package http

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"flagledger/events"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

const evaluateRoute = "/api/v1/flags/{flagKey}/evaluate"

var evaluateAccess = access{who: viewer, scope: events.FlagsEvaluate, tenantHeader: true}

type evaluateBody struct {
	TargetingKey string         `json:"targetingKey,omitempty" doc:"The unit that splits by weight are bucketed by" example:"user-42"`
	Attributes   map[string]any `json:"attributes,omitempty"`
	Environment  string         `json:"environment,omitempty" doc:"Before X-Environment" example:"production"`
}

type evaluationBody struct {
	Enabled       bool    `json:"enabled"`
	Value         value   `json:"value"`
	Reason        string  `json:"reason" enum:"OFF,ARCHIVED,RULE_MATCH,FALLTHROUGH"`
	VariationID   *string `json:"variationId" nullable:"true"`
	VariationName *string `json:"variationName" nullable:"true"`
	RuleID        *string `json:"ruleId" nullable:"true"`
	FlagVersion   uint64  `json:"flagVersion"`
}

// evaluate answers from memory alone. It is no huma operation, for speed.
func (a *API) evaluate(w http.ResponseWriter, r *http.Request) {
	result, err := a.evaluation(r)
	if err != nil {
		writeProblem(w, r, problemOf(r.Context(), err))
		return
	}
	body := evaluationBody{Enabled: result.Enabled, Value: value(result.Value), Reason: string(result.Reason), FlagVersion: uint64(result.Version)}
	if result.VariationID != "" {
		body.VariationID, body.VariationName = &result.VariationID, &result.VariationName
	}
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, &body)
}

func (a *API) evaluation(r *http.Request) (snapshot.Result, error) {
	none := snapshot.Result{}
	p, err := a.admit(r, evaluateAccess, "")
	if err != nil {
		return none, err
	}
	if err := checkMediaType(r); err != nil {
		return none, err
	}
	in, err := a.readEvaluate(r)
	if err != nil {
		return none, err
	}
	environment := in.Environment
	if environment == "" {
		environment = r.Header.Get("X-Environment")
	}
	if err := p.choose(environment); err != nil {
		return none, err
	}
	key, err := url.PathUnescape(chi.URLParam(r, "flagKey"))
	if err != nil {
		return none, queries.ErrNotFound
	}
	return queries.Evaluate(p.tenant, p.environment, key, &snapshot.Context{TargetingKey: in.TargetingKey})
}

func (a *API) readEvaluate(r *http.Request) (in evaluateBody, err error) {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody-1))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return in, newProblem(http.StatusBadRequest, "the body is larger than 1 MiB")
	}
	if err != nil {
		return in, newProblem(http.StatusBadRequest, "the body cannot be read")
	}
	if len(data) == 0 {
		return in, newProblem(http.StatusBadRequest, "request body is required")
	}
	err = readJSON(data, &in)
	if first, ok := errors.AsType[fieldError](err); ok {
		return in, a.misfit(data, first)
	}
	if err != nil {
		return in, newProblem(http.StatusBadRequest, err.Error())
	}
	return in, nil
}

// misfit tells all that is wrong with the members of a body, as huma does for other operations: reading stopped at the first.
func (a *API) misfit(data []byte, first fieldError) *problem {
	var body any
	if err := readJSON(data, &body); err != nil {
		return newProblem(http.StatusBadRequest, err.Error())
	}
	path, found := huma.NewPathBuffer(nil, 0), &huma.ValidateResult{}
	path.Push("body")
	huma.Validate(a.huma.OpenAPI().Components.Schemas, a.evaluateSchema, path, huma.ModeWriteToServer, body, found)
	if len(found.Errors) == 0 {
		return invalid(map[string]string{first.field: first.text})
	}
	return invalid(fieldsOf(found.Errors))
}

// documentEvaluate describes the operation that evaluate serves.
func (a *API) documentEvaluate() {
	doc := a.huma.OpenAPI()
	content := func(v any) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: doc.Components.Schemas.Schema(reflect.TypeOf(v), true, "")}}
	}
	text := &huma.Schema{Type: huma.TypeString}
	op := operation("POST", evaluateRoute, "evaluate-flag", "Evaluation", "What a flag serves")
	op.Description = "Answered from memory: it works while the event store and the database are down."
	op.Security = evaluateAccess.security()
	op.Parameters = []*huma.Param{
		{Name: "flagKey", In: "path", Required: true, Schema: text},
		{Name: "X-Tenant-ID", In: "header", Required: true, Schema: text},
		{Name: "X-Environment", In: "header", Schema: text, Description: "production without it"},
	}
	op.RequestBody = &huma.RequestBody{Required: true, Content: content(evaluateBody{})}
	a.evaluateSchema = op.RequestBody.Content["application/json"].Schema
	op.Responses = map[string]*huma.Response{
		"200":     {Description: "OK", Content: content(evaluationBody{})},
		"default": {Description: "Error", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: doc.Components.Schemas.Schema(reflect.TypeFor[problem](), true, "")}}},
	}
	doc.AddOperation(&op)
}
