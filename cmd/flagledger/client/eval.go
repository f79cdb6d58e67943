package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flagledger/cmd/flagledger/terminal"
)

// user is who is asked for, and at which time.
type user struct {
	Key  string            `placeholder:"USER" help:"Targeting key: the user, or another unit that splits go by."`
	Attr map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"Attribute for the rules, as often as needed. JSON is taken as such, anything else as text."`
	At   time.Time         `type:"time" help:"Time in the past to answer for, of RFC 3339."`
}

// body returns the context of the user.
func (u user) body() ContextBody {
	attributes := map[string]json.RawMessage{}
	for name, value := range u.Attr {
		attributes[name] = json.RawMessage(value)
		if !json.Valid(attributes[name]) {
			attributes[name], _ = json.Marshal(value) // never fails
		}
	}
	body := ContextBody{Attributes: &attributes}
	if u.Key != "" {
		body.TargetingKey = &u.Key
	}
	return body
}

// time returns the time that is asked for, nil for now.
func (u user) time() *time.Time {
	if u.At.IsZero() {
		return nil
	}
	return &u.At
}

// evaluation is what a flag is asked.
type evaluation struct {
	environment
	Flag string `arg:"" name:"key" help:"Key of the flag."`
	user
}

// ask evaluates the flag.
func (e evaluation) ask(ctx context.Context, explain bool) (result EvaluationBody, text []byte, _ error) {
	api, err := e.open(ctx, "")
	if err != nil {
		return result, nil, err
	}
	params := &EvaluateFlagParams{At: e.time()}
	if explain {
		params.Explain = &explain
	}
	return decode[EvaluationBody](api.EvaluateFlag(ctx, e.Flag, params, e.body()))
}

type evalCommand struct {
	evaluation
	Explain bool `help:"Print each step that decided it, too."`
	Test    bool `help:"End with code 1 if the flag is off for the user or serves false, and with code 2 if it cannot be asked."`
}

// Run prints what a flag serves.
func (c evalCommand) Run(ctx context.Context) error {
	result, text, err := c.ask(ctx, c.Explain)
	if err == nil {
		err = c.show(text, func(t *terminal.Table) { result.print(t) })
	}
	switch {
	case err != nil && c.Test:
		return &CodedError{err, 2}
	case err == nil && c.Test && (!result.Enabled || string(result.Value) == "false"):
		return ErrOff
	}
	return err
}

// ErrOff has a command end with code 1 and without a message.
var ErrOff = errors.New("the flag is off")

// CodedError has a command end with another code than 1.
type CodedError struct {
	error
	Code int
}

// Unwrap returns the error without the code.
func (e *CodedError) Unwrap() error { return e.error }

type explainCommand struct{ evaluation }

// Run prints what a flag serves, and why.
func (c explainCommand) Run(ctx context.Context) error {
	result, text, err := c.ask(ctx, true)
	if err != nil {
		return err
	}
	return c.show(text, func(t *terminal.Table) { result.print(t) })
}

// verdict says whether a condition holds, and for what.
func verdict(asked AskedConditionBody) string {
	holds := "holds"
	if !asked.Matched {
		holds = "does not hold"
	}
	return fmt.Sprintf("%s %s for %s", condition(text(asked.Attribute), asked.Op, asked.Values, asked.Negate), holds,
		brief(asked.Actual))
}

// print prints a result, with its steps if it has them.
func (r EvaluationBody) print(t *terminal.Table) {
	t.Row("value", string(r.Value))
	t.Row("reason", r.Reason)
	if r.Prerequisite != nil {
		t.Row("requires", *r.Prerequisite)
	}
	t.Row("variation", text(r.VariationName))
	t.Row("version", strconv.FormatInt(r.FlagVersion, 10))
	if r.Explanation == nil {
		return
	}
	t.Part()
	t.Row("STEP", "OUTCOME", "BECAUSE")
	printSteps(t, r.Explanation.Steps, "")
	if split := r.Explanation.Split; split != nil {
		t.Row("split", text(r.VariationName), fmt.Sprintf("%s %q is in bucket %d of %d",
			split.Attribute, split.Unit, split.Bucket, split.Total))
	}
}

// printSteps prints steps of an evaluation. The steps of a required flag are indented below its prerequisite.
func printSteps(t *terminal.Table, steps []StepBody, indent string) {
	for _, s := range steps {
		name := indent + s.Step
		if s.Key != nil {
			name += " " + *s.Key
		} else if s.RuleId != nil {
			name += " " + cmp.Or(text(s.RuleName), *s.RuleId)
		}
		var because []string
		if s.Conditions != nil {
			for _, asked := range *s.Conditions {
				because = append(because, verdict(asked))
			}
		}
		if s.Step == "prerequisite" {
			because = append(because, "must "+must(s.Off, s.Serves, nil))
		}
		t.Row(name, s.Outcome, strings.Join(because, "; "))
		printSteps(t, nestedSteps(s), indent+"  ")
	}
}

// nestedSteps returns the steps of a required flag. The API's document does not say their shape.
func nestedSteps(s StepBody) (steps []StepBody) {
	if text, err := json.Marshal(s.Steps); err == nil {
		_ = json.Unmarshal(text, &steps) // without steps it prints none
	}
	return steps
}
