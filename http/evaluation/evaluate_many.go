package evaluation

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/usage"
	"flagledger/queries"
)

// chunk is the size in bytes from which a part of a large response is sent.
const chunk = 32 << 10

// evaluateMany answers with what many flags serve, or all of a tenant's. Flags that fail are reported beside the
// others.
func (a *API) evaluateMany(w http.ResponseWriter, r *http.Request) {
	preview := false
	if r.URL.RawQuery != "" {
		query, err := readEvaluateManyQuery(r.URL, a.Now())
		if err != nil || query.past {
			a.evaluateManyAt(w, r, query.moment.At, err)
			return
		}
		preview = query.preview
	}
	p, e, err := a.readEvaluation(r, evaluateManyAccess, readEvaluateMany, a.evaluateManySchema)
	if err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	defer e.release()
	if err := checkKeyQuery(p, r.URL); err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	used := &uncounted{usage.Call{All: e.flagKeys == nil}, a, p}
	if preview {
		used = nil
		if err := p.RequireFlagsRead(); err != nil {
			rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
			return
		}
	}
	if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	results := queries.Select(p.Tenant, e.flagKeys, p.Sees).Evaluate(r.Context(), p.Environment, &e.Context, maxEvaluating)
	sendEvaluations(w, r, p, e, p.Environment, results, used)
}

// sendEvaluations streams the results for many flags. Flags that succeed are added to used; nil does not count them. e
// must hold its work slot.
func sendEvaluations(
	w http.ResponseWriter, r *http.Request, p *rest.Principal, e *evaluationRequest, in state.Environment,
	results iter.Seq2[string, queries.Evaluated], used *uncounted,
) {
	out := newOutput(w)
	defer out.release()
	var failures []failedFlag
	began := false
	sendFull := func() {
		if len(out.b) >= chunk {
			began = true
			used.count()
			e.send(r.Context(), out)
		}
	}
	out.text(`{"flags":{`)
	separator := ""
	for key, answer := range results {
		if e.workSlot.Pace(r.Context()) != nil {
			rest.AbortResponse() // the client has gone
		}
		err := hideFromBrowser(p, &answer.Result, answer.Err)
		switch {
		case errors.Is(err, queries.ErrTooSlow) && began:
			rest.AbortResponse() // the status has been sent already
		case errors.Is(err, queries.ErrTooSlow):
			rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
			return
		case err != nil:
			failures = append(failures, failedFlag{key, err})
			continue
		}
		used.add(&answer, &e.Context)
		out.text(separator)
		out.quote(key)
		out.text(":")
		out.evaluation(&answer.Result, &in)
		separator = ","
		sendFull()
	}
	out.text("}")
	for i, f := range failures {
		f.write(r.Context(), out, i == 0)
		sendFull()
	}
	if len(failures) > 0 {
		out.text("}")
	}
	out.text("}")
	used.count()
	e.leaveWorkSlot()
	out.send()
}

// failedFlag is a flag that could not be evaluated.
type failedFlag struct {
	key string
	err error
}

// write appends the flag to the errors of a response. The first flag opens the object.
func (f failedFlag) write(ctx context.Context, out *output, first bool) {
	if first {
		out.text(`,"errors":{`)
	} else {
		out.text(",")
	}
	problem := rest.ProblemOf(ctx, f.err)
	out.quote(f.key)
	out.text(":")
	out.json(evaluationError{problem.Status, problem.Detail, problem.Errors})
}

// send sends the buffered part of the response. It releases the slot meanwhile, as the client may be slow.
func (e *evaluationRequest) send(ctx context.Context, out *output) {
	e.leaveWorkSlot()
	out.send()
	if e.workSlot.Resume(ctx) != nil {
		rest.AbortResponse() // the client has gone
	}
}
