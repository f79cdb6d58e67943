package evaluation

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"flagledger/http/rest"
	"flagledger/projections/snapshot/evaluation"
)

// explanationBody explains the result of an evaluation.
type explanationBody struct {
	Steps []stepBody             `json:"steps" doc:"In order. The last one decided: later ones were not tested"`
	Split rest.OrNull[splitBody] `json:"split" doc:"How a split chose the variation; null without one"`
}

type stepBody struct {
	Step       string               `json:"step" enum:"status,environment,prerequisite,segment,rule,fallthrough,weights,default"`
	Outcome    string               `json:"outcome" doc:"active, inactive or archived; enabled or disabled; matched or not_matched; served, or not_set for a fallthrough and no_weights for weights; member, not_member, missing or cycle for a segment that the next rule asked; met, unmet, missing, cycle or limit for a prerequisite" example:"matched"`
	Key        string               `json:"key,omitzero" doc:"Of a segment, or of a required flag" example:"beta"`
	Version    uint64               `json:"version,omitzero" doc:"Of the segment or the required flag; absent if it never existed" example:"7"`
	Off        bool                 `json:"off,omitzero" doc:"Whether the required flag must be off" example:"false"`
	Serves     []rest.ServedBody    `json:"serves,omitzero" doc:"What the required flag must serve one of"`
	Steps      nestedSteps          `json:"steps,omitzero" doc:"Of the required flag, where it was asked first; in the shape of these steps"`
	List       string               `json:"list,omitzero" enum:"included,excluded" doc:"Of the segment, if it decided" example:"included"`
	RuleID     string               `json:"ruleId,omitzero" doc:"Of a rule, or of the rule of a segment if it decided" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
	RuleName   *string              `json:"ruleName,omitzero" doc:"Only for a rule, as are conditions" example:"beta testers in the EU"`
	Conditions []AskedConditionBody `json:"conditions,omitzero" doc:"Up to the first that does not hold: later ones were not tested"`
}

// nestedSteps are steps in a step. Their schema does not say their shape, as schemas of the document do not contain
// themselves.
type nestedSteps []stepBody

// Schema implements huma.SchemaProvider.
func (nestedSteps) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type:  huma.TypeArray,
		Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true},
		Examples: []any{[]any{
			map[string]any{"step": "status", "outcome": "active"}, map[string]any{"step": "environment", "outcome": "disabled"},
		}},
	}
}

// AskedConditionBody is a condition that was tested.
type AskedConditionBody struct {
	Attribute string            `json:"attribute,omitzero" doc:"Absent for in_segment" example:"plan"`
	Op        rest.OperatorName `json:"op"`
	Values    []rest.Operand    `json:"values" example:"[\"pro\",\"team\"]"`
	Negate    bool              `json:"negate" example:"false"`
	Actual    rest.Value        `json:"actual" doc:"The attribute's value, null if it is absent; if it is long, its beginning as a string" example:"\"pro\""`
	Matched   bool              `json:"matched" doc:"After negate" example:"true"`
}

type splitBody struct {
	Unit        string `json:"unit" example:"user-42"`
	Attribute   string `json:"attribute" doc:"The attribute whose value is the unit" example:"targetingKey"`
	Salt        string `json:"salt" example:"5f0c8a1e9b7d4c32"`
	Hash        uint64 `json:"hash" doc:"murmur3_32(salt + \":\" + unit)" example:"2654435769"`
	Bucket      uint64 `json:"bucket" doc:"(hash * total) >> 32" example:"61803"`
	Total       uint64 `json:"total" doc:"The sum of the weights, in thousandths" example:"100000"`
	VariationID string `json:"variationId" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
}

const (
	// maxActual limits the bytes of an attribute's value in a condition. allActual limits the bytes of all conditions
	// together, before quoting: with many conditions, each shows less.
	maxActual = 1000
	allActual = 256 << 10
)

// explanation appends an explanation to the evaluation that was written last.
func (o *output) explanation(x evaluation.Explanation) {
	o.b = append(o.b[:len(o.b)-1], `,"explanation":`...)
	o.json(showExplanation(x))
	o.text("}")
}

func showExplanation(x evaluation.Explanation) explanationBody {
	shown := actualValues{min(maxActual, allActual/max(1, conditionsOf(x.Steps))), map[string]rest.Value{}}
	body := explanationBody{Steps: shown.steps(x.Steps)}
	if s := x.Split; s != nil {
		body.Split.Value = &splitBody{s.Unit, s.Attribute, s.Salt, uint64(s.Hash), s.Bucket, s.Total, s.VariationID}
	}
	return body
}

// conditionsOf counts the conditions of steps, and of the steps in them.
func conditionsOf(steps []evaluation.Step) (n int) {
	for _, s := range steps {
		n += len(s.Conditions) + conditionsOf(s.Steps)
	}
	return n
}

// actualValues has the values of attributes as an explanation shows them.
type actualValues struct {
	longest int
	values  map[string]rest.Value // by attribute: many conditions may ask for one
}

func (a actualValues) steps(list []evaluation.Step) []stepBody {
	shown := make([]stepBody, len(list))
	for i, s := range list {
		step := stepBody{
			Step: string(s.Kind), Outcome: s.Outcome, Key: s.Key, Version: uint64(s.Version), List: string(s.List),
			RuleID: s.RuleID,
		}
		if s.Kind == evaluation.RuleStep {
			step.RuleName, step.Conditions = &s.RuleName, make([]AskedConditionBody, 0, len(s.Conditions))
		}
		for _, c := range s.Conditions {
			if a.values[c.Attribute] == nil {
				a.values[c.Attribute] = showActual(c.Actual, a.longest)
			}
			step.Conditions = append(step.Conditions, showAsked(c, a.values[c.Attribute]))
		}
		if p := s.Prerequisite; p != nil {
			step.Off, step.Serves = p.Off, rest.ShowServed(p.Serves)
		}
		if len(s.Steps) > 0 {
			step.Steps = a.steps(s.Steps)
		}
		shown[i] = step
	}
	return shown
}

func showAsked(c evaluation.Condition, actual rest.Value) AskedConditionBody {
	return AskedConditionBody{
		Attribute: c.Attribute,
		Op:        rest.OperatorName(c.Op),
		Values:    rest.ShowOperands(c.Values),
		Negate:    c.Negate,
		Actual:    actual,
		Matched:   c.Matched,
	}
}

// showActual returns the JSON of an attribute's value, or a string with its first bytes if it is longer than longest.
func showActual(attribute any, longest int) rest.Value {
	text := appendAttribute(nil, attribute, longest)
	if len(text) <= longest {
		return text
	}
	cut, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(text[:longest]), ""))
	return cut
}

// appendAttribute appends the JSON of an attribute. It may omit what follows the first longest bytes.
func appendAttribute(b []byte, attribute any, longest int) []byte {
	if len(b) > longest {
		return b
	}
	switch attribute := attribute.(type) {
	case bool:
		return strconv.AppendBool(b, attribute)
	case string:
		b, _ = jsontext.AppendQuote(b, attribute)
		return b
	case evaluation.Number:
		return append(b, attribute.String()...)
	case []any:
		b = append(b, '[')
		for i, element := range attribute {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendAttribute(b, element, longest)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(attribute)) {
			if i > 0 {
				b = append(b, ',')
			}
			b, _ = jsontext.AppendQuote(b, name)
			b = appendAttribute(append(b, ':'), attribute[name], longest)
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}
