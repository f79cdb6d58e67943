package evaluation

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot/evaluation"
)

var evaluateDraftAccess = rest.Access{Who: rest.Viewer, Scope: events.FlagsEvaluate, Unverified: true}

// draftBody is a context and the rules to try with it.
type draftBody struct {
	ContextBody
	Rules       []rest.NewRuleBody    `json:"rules,omitempty" maxItems:"100" doc:"The whole list in its order; the environment's rules by default"`
	Fallthrough rest.FallthroughServe `json:"fallthrough,omitzero" doc:"null tries none; the environment's fallthrough by default"`
}

// draft returns the draft that the body describes. A new rule's id and salt are its index in the list, so that the same
// draft always gives the same answer.
func (b draftBody) draft(in events.EnvironmentRef) commands.RulesDraft {
	d := commands.RulesDraft{Environment: in, Rules: rest.SentRules(b.Rules)}
	for i := range d.Rules {
		index := "rules[" + strconv.Itoa(i) + "]"
		d.Rules[i].NewID, d.Rules[i].Salt = index, index
	}
	if b.Fallthrough.Sent {
		d.Fallthrough = new(b.Fallthrough.Setting())
	}
	return d
}

// evaluateDraft answers with what a flag would serve with other rules, and why.
func (a *API) evaluateDraft(w http.ResponseWriter, r *http.Request) {
	if err := a.answerDraft(w, r); err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
	}
}

func (a *API) answerDraft(w http.ResponseWriter, r *http.Request) error {
	p, err := a.Admit(r, evaluateDraftAccess, "")
	if err != nil {
		return err
	}
	if err := cmp.Or(p.RequireFlagsRead(), rest.CheckMediaType(r)); err != nil {
		return err
	}
	e, err := a.readEvaluationBody(r, p)
	if err != nil {
		return err
	}
	defer e.release()
	body, wrong, err := readDraft[draftBody](a, e, a.evaluateDraftSchema)
	if err != nil {
		return rest.ProblemOfBody(err)
	}
	refuseOthers(r.URL.Query(), wrong)
	flag, environment, err := a.flagOfQuery(r, p, e, evaluationQuery{})
	if err != nil {
		return err
	}
	if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
		return err
	}
	draft := body.draft(environment.EnvironmentRef)
	draft.Unusable = a.UnusableSegments(r.Context(), p.Tenant, "", draft.Rules)
	flag, err = draft.Apply(flag)
	if err := commands.MergeFieldErrors(wrong, err); err != nil {
		return err
	}
	result, explanation, err := evaluation.Explain(flag, environment.ID, &e.Context)
	if err != nil {
		return err
	}
	e.answerWith(w, &result, nil, &explanation)
	return nil
}

// readDraft reads a body with a context and the rules to try with it. wrong holds its schema errors by field.
func readDraft[B any](
	a *API, e *evaluationRequest, schema *huma.Schema,
) (body B, wrong map[string]string, err error) {
	fitting, unfit, err := strictjson.Fit(e.data, schema, a.Huma.OpenAPI().Components.Schemas)
	if err != nil {
		return body, nil, err
	}
	if err := strictjson.Read(fitting, &body); err != nil {
		return body, nil, err
	}
	wrong = map[string]string{}
	maps.Copy(wrong, unfit)
	e.data = fitting
	if err := e.Begin(bytes.NewBuffer(fitting)); err != nil {
		return body, nil, err
	}
	return body, wrong, e.End(e.Object(func(name string) error {
		if name == "rules" || name == "fallthrough" {
			return e.SkipValue()
		}
		return e.member(name)
	}))
}

// documentEvaluateDraft describes the operation of this file.
func (a *API) documentEvaluateDraft() {
	op := rest.Operation("POST", rest.EvaluateDraftRoute, "evaluate-draft", "Rules",
		"What a flag would serve with other rules")
	op.Description = "Tries rules and a fallthrough before they are saved, and explains the result. Nothing is stored " +
		"or counted. The rest of the flag is unchanged and read from the database, at the version in `flagVersion`. " +
		"Errors in the rules are reported by the same names as by PUT, except size limits, which are only checked on " +
		"saving. A machine also needs the scope `flags:read`. A rule without an id has its index, such as `rules[2]`, as " +
		"id and as salt of its rollout. Saving it assigns a new id and salt: the shares remain, but users move between " +
		"variations."
	op.Parameters = []*huma.Param{flagKeyParam(), tenantParam(true), environmentParam()}
	op.Errors = []int{http.StatusUnprocessableEntity}
	a.evaluateDraftSchema = a.document(&op, evaluateDraftAccess, draftBody{}, evaluationBody{})
	op.RequestBody.Content["application/json"].Example = map[string]any{
		"targetingKey": "user-42",
		"attributes":   map[string]any{"plan": "pro"},
		"rules":        rest.ExampleRules(false).(map[string]any)["rules"],
	}
}
