package evaluation

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/queries"
)

var checkSegmentAccess = rest.Access{Who: rest.Viewer, Scope: events.FlagsRead, Unverified: true}

// segmentToCheck is a context, and the rules to try with it.
type segmentToCheck struct {
	ContextBody
	Rules []rest.SegmentRuleChange `json:"rules,omitempty" maxItems:"100" doc:"The whole list in its order, in place of the segment's rules: what saving them would do"`
}

// draft returns the draft that the body describes, which has rules. A new rule's id is its index in the list, so that
// the same draft always gives the same answer.
func (b segmentToCheck) draft() commands.SegmentRulesDraft {
	d := commands.SegmentRulesDraft{Rules: rest.SentSegmentRules(b.Rules)}
	for i := range d.Rules {
		d.Rules[i].NewID = "rules[" + strconv.Itoa(i) + "]"
	}
	return d
}

type segmentCheckBody struct {
	Member     bool                                `json:"member" example:"true"`
	Because    rest.OrNull[segmentCheckReasonBody] `json:"because" doc:"The list or the rule that decided; null if nothing matched"`
	Conditions []segmentCheckConditionBody         `json:"conditions" doc:"Of the rules, of each up to the first that did not hold; empty if a list decided"`
}

type segmentCheckReasonBody struct {
	List   string `json:"list,omitzero" enum:"included,excluded" example:"included"`
	RuleID string `json:"ruleId,omitzero" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
}

type segmentCheckConditionBody struct {
	RuleID string `json:"ruleId" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
	AskedConditionBody
}

// checkSegment answers whether a context is in a segment, and why.
func (a *API) checkSegment(w http.ResponseWriter, r *http.Request) {
	if err := a.answerCheck(w, r); err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
	}
}

func (a *API) answerCheck(w http.ResponseWriter, r *http.Request) error {
	p, err := a.Admit(r, checkSegmentAccess, "")
	if err != nil {
		return err
	}
	if err := rest.CheckMediaType(r); err != nil {
		return err
	}
	e, err := a.readEvaluationBody(r, p)
	if err != nil {
		return err
	}
	defer e.release()
	body, wrong, err := readDraft[segmentToCheck](a, e, a.checkSegmentSchema)
	if err != nil {
		return rest.ProblemOfBody(err)
	}
	query := r.URL.Query()
	refuseOthers(query, wrong, "at", "version")
	m, past := rest.MomentFromQuery(query, a.Now(), wrong)
	if past && body.Rules != nil {
		wrong["rules"] = "cannot be combined with at or version"
	}
	if len(wrong) > 0 {
		return rest.Invalid(wrong)
	}
	segment, err := a.segmentOfCheck(r, p, e, m, past)
	if err == nil && body.Rules != nil {
		segment, err = a.withRules(r.Context(), p, e, segment, body.draft())
	}
	if err != nil {
		return err
	}
	check, err := evaluation.CheckMember(segment, &e.Context)
	if err != nil {
		return err
	}
	out := newOutput(w)
	defer out.release()
	out.json(showCheck(&check))
	e.leaveWorkSlot()
	out.send()
	return nil
}

// withRules returns a segment with the rules of a draft, and has the evaluation use it.
func (a *API) withRules(
	ctx context.Context, p *rest.Principal, e *evaluationRequest, s *evaluation.Segment, draft commands.SegmentRulesDraft,
) (*evaluation.Segment, error) {
	draft.Unusable = a.UnusableSegments(ctx, p.Tenant, s.State().Key, draft.Rules)
	after, err := draft.Apply(*s.State())
	if err != nil {
		return nil, err
	}
	segment, err := evaluation.CompileSegment(&after, nil)
	if err != nil {
		return nil, err
	}
	e.Dependencies = e.Dependencies.WithSegments(e.Dependencies.Segments().With(segment))
	return segment, nil
}

// segmentOfCheck finds the segment at a moment, and sets the rest of the context at that moment. The evaluation then
// holds its slot.
func (a *API) segmentOfCheck(
	r *http.Request, p *rest.Principal, e *evaluationRequest, m queries.Moment, past bool,
) (*evaluation.Segment, error) {
	ctx, key := r.Context(), pathKey(r, "segmentKey")
	if !past {
		if err := p.SelectEnvironment(e.environmentOf(r)); err != nil {
			return nil, err
		}
		e.Dependencies, e.Environment = p.Tenant.Dependencies(), p.Environment.Name
		segment, ok := e.Dependencies.Segments().Find(key)
		if !ok {
			return nil, queries.ErrNotFound
		}
		return segment, a.takeWorkSlot(ctx, e, p)
	}
	e.leaveWorkSlot()
	if err := a.Queries.WaitUntilCurrent(ctx, m.At, "tenant.", "segment."); err != nil {
		return nil, err
	}
	if err := a.takeWorkSlot(ctx, e, p); err != nil {
		return nil, err
	}
	s, err := a.Queries.SegmentAt(ctx, p.Tenant, key, m)
	if err != nil {
		return nil, err
	}
	at := m.At
	if at.IsZero() {
		at = s.UpdatedAt
	}
	in, err := a.FindEnvironmentAt(ctx, p.Tenant.ID(), e.environmentOf(r), at)
	if err != nil {
		return nil, err
	}
	e.Now, e.Environment = at.UTC().Truncate(time.Microsecond), in.Name
	keys := make([]string, len(s.Uses))
	for i, use := range s.Uses {
		keys[i] = use.Key
	}
	if s, err = a.Queries.WithSalt(ctx, s); err != nil {
		return nil, err
	}
	segment, err := evaluation.CompileSegment(s, nil)
	if err != nil {
		return nil, err
	}
	own := evaluation.NewSegments([]*evaluation.Segment{segment})
	segments, err := a.Queries.AddSegmentsAt(ctx, p.Tenant, own, keys, at)
	e.Dependencies = evaluation.NewDependencies(segments)
	return segment, err
}

func showCheck(c *evaluation.Check) segmentCheckBody {
	body := segmentCheckBody{Member: c.Member, Conditions: make([]segmentCheckConditionBody, len(c.Conditions))}
	if c.List != "" || c.RuleID != "" {
		body.Because.Value = &segmentCheckReasonBody{string(c.List), c.RuleID}
	}
	longest := min(maxActual, allActual/max(1, len(c.Conditions)))
	for i, asked := range c.Conditions {
		actual := showActual(asked.Actual, longest)
		body.Conditions[i] = segmentCheckConditionBody{asked.RuleID, showAsked(asked.Condition, actual)}
	}
	return body
}

// documentCheckSegment describes the operation of this file.
func (a *API) documentCheckSegment() {
	op := rest.Operation("POST", rest.CheckSegmentRoute, "check-segment", "Segments", "Whether a context is in a segment")
	op.Description = "Excluded members are not in it, included ones are, and others if a rule matches. Nothing is " +
		"counted. With `rules` the answer is what saving them would lead to: nothing is stored. With `at` " +
		"or `version` the answer is that of the segment then, with the other segments at that time."
	op.Parameters = []*huma.Param{
		{
			Name: "segmentKey", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Example: "beta",
		},
		tenantParam(true), environmentParam(), atParam(),
		{
			Name: "version", In: "query", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0)},
			Description: "A version of the segment. Not allowed with at",
		},
	}
	op.Errors = []int{http.StatusUnprocessableEntity}
	a.checkSegmentSchema = a.document(&op, checkSegmentAccess, segmentToCheck{}, segmentCheckBody{})
	op.RequestBody.Content["application/json"].Example = map[string]any{
		"targetingKey": "user-42",
		"attributes":   map[string]any{"plan": "pro"},
		"rules": []any{map[string]any{
			"id":   "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21",
			"name": "staff",
			"conditions": []any{map[string]any{
				"attribute": "email", "op": "ends_with", "values": []string{"@acme.com"}, "negate": false,
			}},
		}},
	}
}
