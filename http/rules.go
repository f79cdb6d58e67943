package http

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/rules"
)

// serveBody is what a rule or a fallthrough serves, in requests and responses.
type serveBody struct {
	VariationID *string     `json:"variationId,omitzero" nullable:"true" doc:"A variation of the flag" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	Value       value       `json:"value,omitzero"`
	Rollout     []shareBody `json:"rollout,omitzero" nullable:"true" doc:"Variations of the flag, each once, with a sum of weights above 0"`
	BucketBy    *string     `json:"bucketBy,omitzero" nullable:"true" maxLength:"200" doc:"The attribute that a rollout is bucketed by; the default is targetingKey" example:"company.id"`
}

type shareBody struct {
	VariationID string `json:"variationId" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	Weight      number `json:"weight" minimum:"0" maximum:"10000" doc:"Relative to the others'; at most three decimals" example:"20"`
}

// TransformSchema implements huma.SchemaTransformer: each example has one way to serve.
func (*serveBody) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	const on, off = "0199f6a2-4c8e-7d31-9a55-0c6f2f1f7b10", "0199f6a2-5b02-7c1f-8e66-51d0a3c9e2f4"
	share := func(id string, weight int) map[string]any { return map[string]any{"variationId": id, "weight": weight} }
	s.Examples = []any{
		map[string]any{"variationId": on}, map[string]any{"value": true},
		map[string]any{"rollout": []any{share(on, 20), share(off, 80)}, "bucketBy": events.TargetingKey},
	}
	return s
}

// serve returns what was sent, or nil.
func (b *serveBody) serve() *commands.NewServe {
	if b == nil {
		return nil
	}
	serve := &commands.NewServe{
		VariationID: canonicalIDPtr(b.VariationID),
		Value:       json.RawMessage(b.Value),
		BucketBy:    b.BucketBy,
	}
	if b.Rollout != nil {
		serve.Rollout = make([]events.Share, len(b.Rollout))
	}
	for i, share := range b.Rollout {
		// commands refuse it
		serve.Rollout[i] = events.Share{VariationID: events.CanonicalID(share.VariationID), Weight: -1}
		if share.Weight != nil {
			serve.Rollout[i].Weight = share.Weight.weight()
		}
	}
	return serve
}

func showServe(s events.Serve) serveBody {
	body := serveBody{VariationID: textOrNull(s.VariationID), Value: value(s.Value)}
	if s.Rollout == nil {
		return body
	}
	if body.BucketBy = &s.BucketBy; s.BucketBy == "" {
		body.BucketBy = new(events.TargetingKey)
	}
	for _, share := range s.Rollout {
		weight, _ := share.Weight.MarshalJSON() // never fails
		body.Rollout = append(body.Rollout, shareBody{VariationID: share.VariationID, Weight: weight})
	}
	return body
}

// fallthroughServe is what a fallthrough serves; null means none.
type fallthroughServe struct {
	sent  bool
	serve *serveBody
}

// MarshalJSON implements json.Marshaler.
func (s fallthroughServe) MarshalJSON() ([]byte, error) {
	return jsonv2.Marshal(s.serve, jsontext.PreserveRawStrings(true))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *fallthroughServe) UnmarshalJSON(data []byte) error {
	s.sent = true
	return jsonv2.Unmarshal(data, &s.serve, jsonv2.RejectUnknownMembers(true))
}

// setting returns the command that sets the fallthrough, without a flag.
func (s fallthroughServe) setting() commands.SetFallthrough {
	return commands.SetFallthrough{Unset: s.sent && s.serve == nil, Serve: s.serve.serve()}
}

// Schema implements huma.SchemaProvider.
func (fallthroughServe) Schema(r huma.Registry) *huma.Schema {
	schema := *r.SchemaFromRef(r.Schema(reflect.TypeFor[serveBody](), true, "").Ref)
	schema.Nullable = true
	return &schema
}

// operand is a value that a condition compares with, in its original spelling.
type operand struct{ value }

// Schema implements huma.SchemaProvider.
func (operand) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf:    []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeNumber}, {Type: huma.TypeBoolean}},
		Examples: []any{"pro"},
	}
}

// operatorName is the name of an operator of the rule language.
type operatorName string

// Schema implements huma.SchemaProvider.
func (operatorName) Schema(huma.Registry) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString, Examples: []any{"in"}}
	for _, o := range rules.Operators() {
		schema.Enum = append(schema.Enum, string(o.Name))
	}
	return schema
}

type conditionBody struct {
	Attribute string       `json:"attribute" example:"plan"`
	Op        operatorName `json:"op"`
	Values    []operand    `json:"values"`
	Negate    bool         `json:"negate" example:"false"`
}

type newConditionBody struct {
	Attribute string       `json:"attribute" minLength:"1" maxLength:"200" doc:"targetingKey, or a path into the attributes: a.b" example:"plan"`
	Op        operatorName `json:"op"`
	Values    []operand    `json:"values,omitempty" maxItems:"1000" doc:"One of them must match. in takes strings, numbers and booleans; gt, gte, lt and lte numbers; before and after RFC 3339 times; matches RE2 regular expressions; semver_* versions of semver.org; exists none; the others strings" example:"[\"pro\",\"team\"]"`
	Negate    bool         `json:"negate,omitempty" doc:"Inverts the result. An absent attribute, or one of another type, never matches, so its negation does"`
}

type ruleBody struct {
	ID         string          `json:"id" doc:"Send it back to preserve the buckets of the rule's rollout" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
	Name       string          `json:"name" example:"beta testers in the EU"`
	Conditions []conditionBody `json:"conditions"`
	Serve      serveBody       `json:"serve"`
}

type newRuleBody struct {
	ID         *string            `json:"id,omitempty" nullable:"true" doc:"The id of an existing rule, to preserve the buckets of its rollout; a rule without it is new"`
	Name       string             `json:"name,omitempty" maxLength:"200" example:"beta testers in the EU"`
	Conditions []newConditionBody `json:"conditions" maxItems:"50" doc:"All must hold; a rule without conditions matches everyone"`
	Serve      *serveBody         `json:"serve" doc:"Exactly one of variationId, value and rollout; null counts as not sent"`
}

func (b newRuleBody) rule() commands.NewRule {
	rule := commands.NewRule{
		ID:    canonicalIDPtr(b.ID),
		NewID: commands.NewID(),
		Salt:  commands.NewSalt(),
		Name:  b.Name,
		Serve: b.Serve.serve(),
	}
	if b.Conditions != nil {
		rule.Conditions = make([]events.Condition, len(b.Conditions))
	}
	for i, c := range b.Conditions {
		rule.Conditions[i] = events.Condition{Attribute: c.Attribute, Op: events.Operator(c.Op), Negate: c.Negate}
		for _, v := range c.Values {
			rule.Conditions[i].Values = append(rule.Conditions[i].Values, json.RawMessage(v.value))
		}
	}
	return rule
}

// sentRules converts the rules of a body for a command; nil stays nil.
func sentRules(sent []newRuleBody) []commands.NewRule {
	if sent == nil {
		return nil
	}
	sent = sent[:min(len(sent), commands.MaxRules+1)] // one too many is refused
	list := make([]commands.NewRule, len(sent))
	for i, r := range sent {
		list[i] = r.rule()
	}
	return list
}

func showRule(r events.Rule) ruleBody {
	body := ruleBody{
		ID:         r.ID,
		Name:       r.Name,
		Conditions: make([]conditionBody, len(r.Conditions)),
		Serve:      showServe(r.Serve),
	}
	for i, c := range r.Conditions {
		body.Conditions[i] = conditionBody{
			Attribute: c.Attribute,
			Op:        operatorName(c.Op),
			Values:    showOperands(c.Values),
			Negate:    c.Negate,
		}
	}
	return body
}

func showOperands(values []json.RawMessage) []operand {
	shown := make([]operand, len(values))
	for i, v := range values {
		shown[i] = operand{value(v)}
	}
	return shown
}

type rulesBody struct {
	Rules       []ruleBody       `json:"rules" doc:"The first that matches decides"`
	Fallthrough fallthroughServe `json:"fallthrough" doc:"What is served if no rule matches; null for a split by the variations' weights"`
}

type rulesOutput struct {
	Changed
	ETag string `header:"ETag" doc:"The flag's version, for If-Match"`
	Body rulesBody
}

func showRules(version events.Revision, rules []events.Rule, serve *events.Serve) *rulesOutput {
	out := &rulesOutput{
		ETag: etag(version),
		Body: rulesBody{Rules: make([]ruleBody, len(rules)), Fallthrough: showFallthrough(serve)},
	}
	for i, r := range rules {
		out.Body.Rules[i] = showRule(r)
	}
	return out
}

func showFallthrough(serve *events.Serve) (shown fallthroughServe) {
	if serve != nil {
		shown.serve = new(showServe(*serve))
	}
	return shown
}

type newRulesBody struct {
	Rules       []newRuleBody    `json:"rules" maxItems:"100" doc:"The whole list in its order"`
	Fallthrough fallthroughServe `json:"fallthrough,omitzero" doc:"May be sent back unchanged; its own PUT changes it"`
}

type fallthroughBody struct {
	Serve fallthroughServe `json:"serve" doc:"Exactly one of variationId, value and rollout; null unsets it"`
}

type fallthroughOutput struct {
	Changed
	ETag string `header:"ETag" doc:"The flag's version, for If-Match"`
	Body fallthroughBody
}

// setFallthrough returns the command that sets the fallthrough of the call's flag and environment.
func setFallthrough(ctx context.Context, in FlagChange, s fallthroughServe) commands.SetFallthrough {
	cmd := s.setting()
	cmd.FlagRef, cmd.Environment = in.ref(ctx), principalOf(ctx).environment
	return cmd
}

func (a *API) addRules() {
	const tag, path = "Rules", "/api/v1/flags/{flagKey}"
	get := operation("GET", path+"/rules", "get-rules", tag, "A flag's rules and fallthrough in an environment")
	get.Description = pastRead
	register(
		a,
		readFlagsAt,
		withExamples(get, nil, exampleRules(true)),
		func(ctx context.Context, in *FlagRead) (*rulesOutput, error) {
			if then, environment, asked, err := in.past(ctx, a); asked {
				out := showRules(then.Version, then.Rules[environment.ID], then.FallthroughIn(environment.ID))
				out.ETag = ""
				return out, err
			}
			p := principalOf(ctx)
			r, err := a.Queries.Rules(ctx, p.tenant.ID(), p.environment.ID, in.Key)
			if err != nil {
				return nil, err
			}
			return showRules(events.Revision(r.Version), r.Rules, r.Fallthrough), nil
		},
	)
	set := operation("PUT", path+"/rules", "set-rules", tag, "Replace a flag's rules in an environment")
	set.Description = "Replaces the rules of the environment; an empty list removes all rules. A rule that is sent with " +
		"its id preserves its rollout's buckets, also if it moves; a rule without id is new. A list that changes nothing " +
		"creates no event. The JSON of all rules of an environment is limited in size. " +
		growFlagText
	set.Errors = append(set.Errors, http.StatusConflict)
	set = withExamples(set, exampleRules(false), exampleRules(true))
	register(a, changeFlags, set, func(ctx context.Context, in *struct {
		FlagChange
		Body newRulesBody
	}) (*rulesOutput, error) {
		cmd := commands.SetRules{
			FlagRef:     in.ref(ctx),
			Environment: principalOf(ctx).environment,
			Rules:       sentRules(in.Body.Rules),
		}
		if in.Body.Fallthrough.sent {
			cmd.Fallthrough = new(setFallthrough(ctx, in.FlagChange, in.Body.Fallthrough))
		}
		if cmd.Costly() {
			leave, err := a.enterChanges(ctx)
			if err != nil {
				return nil, err
			}
			defer leave()
		}
		flag, done, err := do(ctx, a.Writer, cmd)
		if err != nil {
			return nil, err
		}
		out := showRules(flag.Version, flag.Rules[cmd.Environment.ID], flag.FallthroughIn(cmd.Environment.ID))
		out.Changed = changeHeaders(done)
		return out, nil
	})
	set = operation("PUT", path+"/fallthrough", "set-fallthrough", tag,
		"Set what a flag serves in an environment if no rule matches")
	set.Description = growFlagText
	set.Errors = append(set.Errors, http.StatusConflict)
	exampleFallthrough := map[string]any{"serve": exampleRollout}
	register(a, changeFlags, withExamples(set, exampleFallthrough, exampleFallthrough),
		func(ctx context.Context, in *struct {
			FlagChange
			Body fallthroughBody
		}) (*fallthroughOutput, error) {
			cmd := setFallthrough(ctx, in.FlagChange, in.Body.Serve)
			flag, done, err := do(ctx, a.Writer, cmd)
			if err != nil {
				return nil, err
			}
			serve := showFallthrough(flag.FallthroughIn(cmd.Environment.ID))
			return &fallthroughOutput{Changed: changeHeaders(done), ETag: etag(flag.Version), Body: fallthroughBody{serve}}, nil
		})
}

// exampleRules returns example rules of a request, or of a response if shown.
func exampleRules(shown bool) any {
	condition := map[string]any{"attribute": "plan", "op": "in", "values": []string{"pro", "team"}}
	rule := map[string]any{
		"name":       "beta testers in the EU",
		"conditions": []any{condition},
		"serve":      map[string]any{"variationId": exampleVariation},
	}
	if !shown {
		return map[string]any{"rules": []any{rule}}
	}
	rule["id"], condition["negate"] = "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21", false
	return map[string]any{"rules": []any{rule}, "fallthrough": exampleRollout}
}

const exampleVariation = "0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"

var exampleRollout = map[string]any{
	"rollout": []any{
		map[string]any{"variationId": exampleVariation, "weight": 20},
		map[string]any{"variationId": "0198c5a1-7d2e-7b10-9d0c-4a6b8c0d2e88", "weight": 80},
	},
	"bucketBy": "targetingKey",
}
