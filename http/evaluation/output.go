package evaluation

import (
	"net/http"
	"strconv"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/snapshot/evaluation"
)

// output builds the body of a response piece by piece, because reflection is several times slower. Its memory is
// reused.
type output struct {
	b []byte
	w http.ResponseWriter
}

var outputs = sync.Pool{New: func() any { return &output{} }}

func newOutput(w http.ResponseWriter) *output {
	o := outputs.Get().(*output)
	o.w = w
	return o
}

func (o *output) release() {
	o.w = nil
	if o.b = o.b[:0]; cap(o.b) <= maxReused {
		outputs.Put(o)
	}
}

var jsonMedia = []string{"application/json"}

// send sends the buffer, and aborts the response if the client does not read it.
func (o *output) send() {
	o.w.Header()["Content-Type"] = jsonMedia
	if _, err := o.w.Write(o.b); err != nil {
		rest.AbortResponse()
	}
	o.b = o.b[:0]
}

func (o *output) text(s string) { o.b = append(o.b, s...) }

// quote appends a JSON string. s must be valid UTF-8.
func (o *output) quote(s string) { o.b, _ = jsontext.AppendQuote(o.b, s) }

// json appends a rare value by reflection.
func (o *output) json(v any) {
	text, err := jsonv2.Marshal(v, jsonv2.Deterministic(true))
	if err != nil {
		panic(err) // the types are part of the program
	}
	o.b = append(o.b, text...)
}

// evaluation appends an evaluationBody. in is the environment of the answer, or nil if it cannot be had again.
func (o *output) evaluation(r *evaluation.Result, in *state.Environment) {
	o.text(`{"enabled":`)
	o.b = strconv.AppendBool(o.b, r.Enabled)
	o.text(`,"value":`)
	o.b = append(o.b, r.Value...)
	o.text(`,"reason":"`)
	o.text(string(r.Reason))
	if r.Prerequisite != "" {
		o.text(`","prerequisite":`)
		o.quote(r.Prerequisite)
		o.text(`,"variationId":`)
	} else {
		o.text(`","variationId":`)
	}
	o.textOrNull(r.VariationID)
	o.text(`,"variationName":`)
	o.textOrNull(r.VariationName)
	o.text(`,"ruleId":`)
	o.textOrNull(r.RuleID)
	o.text(`,"flagVersion":`)
	o.b = strconv.AppendUint(o.b, uint64(r.Version), 10)
	if in != nil && !r.ChangedAt.IsZero() {
		o.text(`,"revision":`)
		o.revision(r, in)
	}
	o.text("}")
}

func (o *output) revision(r *evaluation.Result, in *state.Environment) {
	o.text(`"`)
	o.b = revisionOf(r, in).append(o.b)
	o.text(`"`)
}

func (o *output) textOrNull(s string) {
	if s == "" {
		o.text("null")
		return
	}
	o.quote(s)
}
