package snapshot

import (
	"fmt"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

var (
	production = evaluationtest.Production
	on         = events.FlagEnabled{Environment: production}
	three      = made(events.NumberFlag, "0", choice("a", "1", 0), choice("b", "2", 0), choice("c", "3", 0))
	toA        = events.Serve{VariationID: "a"}
	toB        = events.Serve{VariationID: "b"}
	seven      = events.Serve{Value: []byte("7")}
)

var (
	made      = evaluationtest.Made
	choice    = evaluationtest.Choice
	ruled     = evaluationtest.Ruled
	rulesIn   = evaluationtest.RulesIn
	when      = evaluationtest.When
	otherwise = evaluationtest.Otherwise
	rolled    = evaluationtest.Rolled
	half      = evaluationtest.Half
	raw       = evaluationtest.Raw
)

func attributes(text string) map[string]any {
	return evaluationtest.Attributes(text, evaluation.ParseNumber)
}

// shown is the part of a result that callers see.
func shown(r evaluation.Result) string {
	r.Variation = nil
	return fmt.Sprintf("%+v", r)
}
