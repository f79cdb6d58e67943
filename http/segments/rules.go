package segments

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
)

// segmentRuleBody is a rule of a segment in a response.
type segmentRuleBody struct {
	ID         string               `json:"id" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
	Name       string               `json:"name" example:"staff"`
	Conditions []rest.ConditionBody `json:"conditions" doc:"All must hold"`
}

func showRules(list []events.Rule) []segmentRuleBody {
	shown := make([]segmentRuleBody, len(list))
	for i, r := range list {
		shown[i] = segmentRuleBody{r.ID, r.Name, rest.ShowConditions(r.Conditions)}
	}
	return shown
}

type segmentRulesBody struct {
	Rules []segmentRuleBody `json:"rules" doc:"Who matches one of them is in the segment, unless excluded"`
}

type newSegmentRulesBody struct {
	Rules []rest.SegmentRuleChange `json:"rules" maxItems:"100" doc:"The whole list"`
}

type rulesOutput struct {
	rest.Changed
	ETag string `header:"ETag" doc:"The segment's version, for If-Match"`
	Body segmentRulesBody
}

// exampleRule is a rule in examples, of a response if shown.
func exampleRule(shown bool) map[string]any {
	condition := map[string]any{"attribute": "email", "op": "ends_with", "values": []string{"@acme.com"}}
	rule := map[string]any{"name": "staff", "conditions": []any{condition}}
	if shown {
		rule["id"], condition["negate"] = "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21", false
	}
	return rule
}

func exampleRules(shown bool) any { return map[string]any{"rules": []any{exampleRule(shown)}} }

func (a *API) addRules() {
	get := rest.Operation("GET", path+"/rules", "get-segment-rules", tag, "A segment's rules")
	get.Description = historyText
	rest.Register(a.Core, reading, rest.WithExamples(get, nil, exampleRules(true)),
		func(ctx context.Context, in *SegmentRead) (*rulesOutput, error) {
			s, past, err := in.read(ctx, a)
			if err != nil {
				return nil, err
			}
			out := &rulesOutput{Body: segmentRulesBody{showRules(s.Rules)}}
			if !past {
				out.ETag = rest.ETag(s.Version)
			}
			return out, nil
		})
	set := rest.Operation("PUT", path+"/rules", "set-segment-rules", tag, "Replace a segment's rules")
	set.Description = "An empty list removes all rules. A list that changes nothing creates no event. " + referText
	set.Errors = []int{http.StatusConflict}
	set = rest.WithExamples(set, exampleRules(false), exampleRules(true))
	rest.Register(a.Core, changing, set, func(ctx context.Context, in *struct {
		SegmentChange
		Body newSegmentRulesBody
	}) (*rulesOutput, error) {
		cmd := commands.SetSegmentRules{SegmentRef: in.ref(ctx), Rules: rest.SentSegmentRules(in.Body.Rules)}
		cmd.Unusable = a.UnusableSegments(ctx, rest.PrincipalOf(ctx).Tenant, in.Key, cmd.Rules)
		if cmd.Costly() {
			leave, err := a.EnterChanges(ctx)
			if err != nil {
				return nil, err
			}
			defer leave()
		}
		s, done, err := rest.Do(ctx, a.Writer, cmd)
		if err != nil {
			return nil, err
		}
		return &rulesOutput{rest.ChangeHeaders(done), rest.ETag(s.Version), segmentRulesBody{showRules(s.Rules)}}, nil
	})
}
