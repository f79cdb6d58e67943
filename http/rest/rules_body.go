package rest

import (
	"encoding/json"
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
	Value       Value       `json:"value,omitzero"`
	Rollout     []shareBody `json:"rollout,omitzero" nullable:"true" doc:"Variations of the flag, each once, with a sum of weights above 0"`
	BucketBy    *string     `json:"bucketBy,omitzero" nullable:"true" maxLength:"200" doc:"The attribute that a rollout is bucketed by; the default is targetingKey" example:"company.id"`
}

type shareBody struct {
	VariationID string `json:"variationId" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	Weight      Number `json:"weight" minimum:"0" maximum:"10000" doc:"Relative to the others'; at most three decimals" example:"20"`
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
			serve.Rollout[i].Weight = share.Weight.Weight()
		}
	}
	return serve
}

func showServe(s events.Serve) serveBody {
	body := serveBody{VariationID: TextOrNull(s.VariationID), Value: Value(s.Value)}
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

// FallthroughServe is what a fallthrough serves; null means none.
type FallthroughServe struct {
	Sent  bool
	serve *serveBody
}

// MarshalJSON implements json.Marshaler.
func (s FallthroughServe) MarshalJSON() ([]byte, error) {
	return jsonv2.Marshal(s.serve, jsontext.PreserveRawStrings(true))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *FallthroughServe) UnmarshalJSON(data []byte) error {
	s.Sent = true
	return jsonv2.Unmarshal(data, &s.serve, jsonv2.RejectUnknownMembers(true))
}

// Setting returns the command that sets the fallthrough, without a flag.
func (s FallthroughServe) Setting() commands.SetFallthrough {
	return commands.SetFallthrough{Unset: s.Sent && s.serve == nil, Serve: s.serve.serve()}
}

// Schema implements huma.SchemaProvider.
func (FallthroughServe) Schema(r huma.Registry) *huma.Schema {
	schema := *r.SchemaFromRef(r.Schema(reflect.TypeFor[serveBody](), true, "").Ref)
	schema.Nullable = true
	return &schema
}

// Operand is a value that a condition compares with, in its original spelling.
type Operand struct{ Value }

// Schema implements huma.SchemaProvider.
func (Operand) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf:    []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeNumber}, {Type: huma.TypeBoolean}},
		Examples: []any{"pro"},
	}
}

// OperatorName is the name of an operator of the rule language.
type OperatorName string

// Schema implements huma.SchemaProvider.
func (OperatorName) Schema(huma.Registry) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString, Examples: []any{"in"}}
	for _, o := range rules.Operators() {
		schema.Enum = append(schema.Enum, string(o.Name))
	}
	return schema
}

// ConditionBody is a condition in a response.
type ConditionBody struct {
	Attribute string       `json:"attribute,omitzero" doc:"Absent for in_segment" example:"plan"`
	Op        OperatorName `json:"op"`
	Values    []Operand    `json:"values"`
	Negate    bool         `json:"negate" example:"false"`
}

// NewConditionBody is a condition in a request.
type NewConditionBody struct {
	Attribute string       `json:"attribute,omitempty" maxLength:"200" doc:"targetingKey, a path into the attributes (a.b), $environment or $now. in_segment takes none, all others require it" example:"plan"`
	Op        OperatorName `json:"op"`
	Values    []Operand    `json:"values,omitempty" maxItems:"1000" doc:"One of them must match. in takes strings, numbers and booleans; gt, gte, lt and lte numbers; before and after RFC 3339 times; matches RE2 regular expressions; semver_* versions of semver.org; exists none; in_segment keys of segments; the others strings" example:"[\"pro\",\"team\"]"`
	Negate    bool         `json:"negate,omitempty" doc:"Inverts the result. An absent attribute, or one of another type, never matches, so its negation does"`
}

// RuleBody is a rule in a response.
type RuleBody struct {
	ID         string          `json:"id" doc:"Send it back to preserve the buckets of the rule's rollout" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
	Name       string          `json:"name" example:"beta testers in the EU"`
	Conditions []ConditionBody `json:"conditions"`
	Serve      serveBody       `json:"serve"`
}

// NewRuleBody is a rule in a request.
type NewRuleBody struct {
	ID         *string            `json:"id,omitempty" nullable:"true" doc:"The id of an existing rule, to preserve the buckets of its rollout; a rule without it is new"`
	Name       string             `json:"name,omitempty" maxLength:"200" example:"beta testers in the EU"`
	Conditions []NewConditionBody `json:"conditions" maxItems:"50" doc:"All must hold; a rule without conditions matches everyone"`
	Serve      *serveBody         `json:"serve" doc:"Exactly one of variationId, value and rollout; null counts as not sent"`
}

func (b NewRuleBody) rule() commands.NewRule {
	rule := commands.NewRule{
		ID:    canonicalIDPtr(b.ID),
		NewID: commands.NewID(),
		Salt:  commands.NewSalt(),
		Name:  b.Name,
		Serve: b.Serve.serve(),
	}
	rule.Conditions = SentConditions(b.Conditions)
	return rule
}

// SentConditions converts the conditions of a body for a command; nil stays nil.
func SentConditions(sent []NewConditionBody) []events.Condition {
	if sent == nil {
		return nil
	}
	list := make([]events.Condition, len(sent))
	for i, c := range sent {
		list[i] = events.Condition{Attribute: c.Attribute, Op: events.Operator(c.Op), Negate: c.Negate}
		for _, v := range c.Values {
			list[i].Values = append(list[i].Values, json.RawMessage(v.Value))
		}
	}
	return list
}

// SentRules converts the rules of a body for a command; nil stays nil.
func SentRules(sent []NewRuleBody) []commands.NewRule {
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

// ShowRule returns a rule for a response.
func ShowRule(r events.Rule) RuleBody {
	body := RuleBody{
		ID:         r.ID,
		Name:       r.Name,
		Conditions: ShowConditions(r.Conditions),
		Serve:      showServe(r.Serve),
	}
	return body
}

// ShowConditions returns conditions for a response.
func ShowConditions(list []events.Condition) []ConditionBody {
	shown := make([]ConditionBody, len(list))
	for i, c := range list {
		shown[i] = ConditionBody{
			Attribute: c.Attribute,
			Op:        OperatorName(c.Op),
			Values:    ShowOperands(c.Values),
			Negate:    c.Negate,
		}
	}
	return shown
}

// ShowOperands returns the values of a condition for a response.
func ShowOperands(values []json.RawMessage) []Operand {
	shown := make([]Operand, len(values))
	for i, v := range values {
		shown[i] = Operand{Value(v)}
	}
	return shown
}

// RulesBody holds the rules and the fallthrough of a flag in an environment.
type RulesBody struct {
	Rules       []RuleBody       `json:"rules" doc:"The first that matches decides"`
	Fallthrough FallthroughServe `json:"fallthrough" doc:"What is served if no rule matches; null for a split by the variations' weights"`
}

// ShowFallthrough returns a fallthrough for a response; nil means none.
func ShowFallthrough(serve *events.Serve) (shown FallthroughServe) {
	if serve != nil {
		shown.serve = new(showServe(*serve))
	}
	return shown
}

// ExampleRules returns example rules of a request, or of a response if shown.
func ExampleRules(shown bool) any {
	condition := map[string]any{"attribute": "plan", "op": "in", "values": []string{"pro", "team"}}
	rule := map[string]any{
		"name":       "beta testers in the EU",
		"conditions": []any{condition},
		"serve":      map[string]any{"variationId": ExampleVariation},
	}
	if !shown {
		return map[string]any{"rules": []any{rule}}
	}
	rule["id"], condition["negate"] = "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21", false
	return map[string]any{"rules": []any{rule}, "fallthrough": ExampleRollout}
}

// ExampleVariation is the id of a variation in examples.
const ExampleVariation = "0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"

// ExampleRollout is what a rule serves in examples.
var ExampleRollout = map[string]any{
	"rollout": []any{
		map[string]any{"variationId": ExampleVariation, "weight": 20},
		map[string]any{"variationId": "0198c5a1-7d2e-7b10-9d0c-4a6b8c0d2e88", "weight": 80},
	},
	"bucketBy": "targetingKey",
}
