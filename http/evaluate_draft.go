package http

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
)

const evaluateDraftRoute = "/api/v1/flags/{flagKey}/rules/evaluate"

var evaluateDraftAccess = access{who: viewer, scope: events.FlagsEvaluate, unverified: true}

// draftBody is a context, and the rules that are tried with it.
type draftBody struct {
	ContextBody
	Rules       []newRuleBody    `json:"rules,omitempty" maxItems:"100" doc:"The whole list in its order; that of the environment without it"`
	Fallthrough fallthroughServe `json:"fallthrough,omitzero" doc:"null tries none; that of the environment without it"`
}

// draft is what the body tries. A new rule's id is its place in the list, and its rollouts are drawn by that, so that
// the same draft always gives the same answer.
func (b draftBody) draft(in events.EnvironmentRef) commands.RulesDraft {
	d := commands.RulesDraft{Environment: in, Rules: sentRules(b.Rules)}
	for i := range d.Rules {
		place := "rules[" + strconv.Itoa(i) + "]"
		d.Rules[i].NewID, d.Rules[i].Salt = place, place
	}
	if b.Fallthrough.sent {
		d.Fallthrough = new(b.Fallthrough.setting())
	}
	return d
}

// evaluateDraft answers what a flag would serve with other rules, and why.
func (a *API) evaluateDraft(w http.ResponseWriter, r *http.Request) {
	if err := a.answerDraft(w, r); err != nil {
		writeProblem(w, r, problemOf(r.Context(), err))
	}
}

func (a *API) answerDraft(w http.ResponseWriter, r *http.Request) error {
	p, err := a.admit(r, evaluateDraftAccess, "")
	if err != nil {
		return err
	}
	if err := cmp.Or(p.requireFlagsRead(), checkMediaType(r)); err != nil {
		return err
	}
	e, err := a.readEvaluationBody(r, p)
	if err != nil {
		return err
	}
	defer e.release()
	body, wrong, err := a.readDraft(e)
	if err != nil {
		return problemOfBody(err)
	}
	refuseOthers(r.URL.Query(), wrong)
	flag, environment, err := a.flagOfQuery(r, p, e, evaluationQuery{})
	if err != nil {
		return err
	}
	if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
		return err
	}
	flag, err = body.draft(environment).Apply(flag)
	if err := commands.MergeFieldErrors(wrong, err); err != nil {
		return err
	}
	result, explanation, err := snapshot.Explain(flag, environment.ID, &e.Context)
	if err != nil {
		return err
	}
	e.answerWith(w, &result, &explanation)
	return nil
}

// readDraft reads the body of an evaluation that tries rules. wrong says by field what does not fit its schema.
func (a *API) readDraft(e *evaluationRequest) (body draftBody, wrong map[string]string, err error) {
	fitting, unfit, err := strictjson.Fit(e.data, a.evaluateDraftSchema, a.huma.OpenAPI().Components.Schemas)
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
	op := operation("POST", evaluateDraftRoute, "evaluate-draft", "Rules", "What a flag would serve with other rules")
	op.Description = "Tries rules and a fallthrough before they are saved, and says why they serve what they do. " +
		"Nothing is stored, and nothing is counted. The rest of the flag is as it is, " +
		"with the version in `flagVersion`, which the database is asked for. What is wrong with the rules is told as PUT " +
		"tells it, by the same names; that the flag, or all of the tenant's, would be too large is told " +
		"once they are saved. A machine needs the scope `flags:read` too. A rule without an id is named by its place, such " +
		"as `rules[2]`, where an id would " +
		"stand, and its rollout is drawn by that: once it is saved it has an id and a salt of its own, so that its shares " +
		"stay, and who gets which does not."
	op.Parameters = []*huma.Param{flagKeyParam(), tenantParam(false), environmentParam()}
	op.Errors = []int{http.StatusUnprocessableEntity}
	a.evaluateDraftSchema = a.document(&op, evaluateDraftAccess, draftBody{}, evaluationBody{})
	op.RequestBody.Content["application/json"].Example = map[string]any{
		"targetingKey": "user-42",
		"attributes":   map[string]any{"plan": "pro"},
		"rules":        exampleRules(false).(map[string]any)["rules"],
	}
}
