package http

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"flagledger/commands"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

const (
	// chunk is how much of a large answer is gathered before it is sent.
	chunk = 32 << 10
	// maxHeld is the largest answer that is gathered whole, where it must be known whole before it is sent. A larger one is made twice.
	maxHeld = 256 << 10
)

// evaluateMany answers what many flags serve, or all of a tenant's. One that cannot be evaluated does not spoil the others.
func (a *API) evaluateMany(w http.ResponseWriter, r *http.Request) {
	p, e, err := a.readEvaluation(r, evaluateManyAccess, readEvaluateMany, a.evaluateManySchema)
	if err != nil {
		writeProblem(w, r, problemOf(r.Context(), err))
		return
	}
	defer e.release()
	if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
		writeProblem(w, r, problemOf(r.Context(), err))
		return
	}
	out := newOutput(w)
	defer out.release()
	type failure struct {
		key string
		err error
	}
	var failures []failure
	evaluated, began := 0, false
	defer func() { a.Meter.Count(p.tenant.ID(), evaluated) }()
	sendFull := func() {
		if len(out.b) >= chunk {
			began = true
			e.send(r.Context(), out)
		}
	}
	out.text(`{"flags":{`)
	separator := ""
	for key, answer := range queries.Select(p.tenant, e.flagKeys).Evaluate(r.Context(), p.environment, &e.Context, maxEvaluating) {
		if e.workSlot.Pace(r.Context()) != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
		switch {
		case errors.Is(answer.Err, queries.ErrTooSlow) && began:
			panic(http.ErrAbortHandler) // the status has been sent: what is left is to break off
		case errors.Is(answer.Err, queries.ErrTooSlow):
			evaluated = 0 // a refused call counts none
			writeProblem(w, r, problemOf(r.Context(), answer.Err))
			return
		case answer.Err != nil:
			failures = append(failures, failure{key, answer.Err})
			continue
		}
		evaluated++
		out.text(separator)
		out.quote(key)
		out.text(":")
		out.evaluation(&answer.Result)
		separator = ","
		sendFull()
	}
	out.text("}")
	separator = `,"errors":{`
	for _, f := range failures {
		problem := problemOf(r.Context(), f.err)
		out.text(separator)
		out.quote(f.key)
		out.text(":")
		out.json(evaluationError{problem.Status, problem.Detail, problem.Errors})
		separator = ","
		sendFull()
	}
	if len(failures) > 0 {
		out.text("}")
	}
	out.text("}")
	e.leaveWorkSlot()
	out.send()
}

// send sends what has been gathered. It holds no slot meanwhile: the client may be slow.
func (e *evaluationRequest) send(ctx context.Context, out *output) {
	e.leaveWorkSlot()
	out.send()
	if e.workSlot.Resume(ctx) != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
}

// ofrepEvaluateMany answers what all flags of the tenant serve, unless the client has that already.
func (a *API) ofrepEvaluateMany(w http.ResponseWriter, r *http.Request) {
	p, e, err := a.readOFREPEvaluation(r)
	if err != nil {
		writeOFREP(w, r, "", err)
		return
	}
	defer e.release()
	e.leaveWorkSlot()
	a.catchUp(r, p)
	if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
		writeOFREP(w, r, "", err)
		return
	}
	stream, err := a.streamURL(p)
	if refusal, ok := errors.AsType[*commands.Error](err); err != nil && (!ok || refusal.Kind != commands.Unavailable) { // without one, clients ask from time to time
		writeOFREP(w, r, "", err)
		return
	}
	out := newOutput(w)
	defer out.release()
	flags := queries.Select(p.tenant, nil)
	// write appends the answer, and calls full whenever it has reached a size.
	write := func(size int, full func()) (evaluated int, err error) {
		out.text(`{"flags":[`)
		separator := ""
		for key, answer := range flags.Evaluate(r.Context(), p.environment, &e.Context, maxEvaluating) {
			if e.workSlot.Pace(r.Context()) != nil {
				panic(http.ErrAbortHandler) // the client has gone
			}
			switch {
			case errors.Is(answer.Err, queries.ErrTooSlow):
				return evaluated, answer.Err
			case answer.Reason == snapshot.Archived:
				continue
			case answer.Err != nil:
				out.text(separator)
				out.json(ofrepErrorOf(r.Context(), key, answer.Err).of(key))
			default:
				out.text(separator)
				out.ofrep(key, &answer.Result)
				evaluated++
			}
			separator = ","
			if len(out.b) >= size {
				full()
			}
		}
		// The tag covers the stream's URL too: a client that comes back with a new token gets the new URL before the old one ends.
		out.text(`],"eventStreams":[`)
		if stream != "" {
			out.text(`{"type":"sse","url":`)
			out.quote(stream)
			out.text("}")
		}
		out.text("]}")
		return evaluated, nil
	}
	hash, held := sha256.New(), true
	evaluated, err := write(maxHeld, func() {
		held = false
		_, _ = hash.Write(out.b)
		out.b = out.b[:0]
	})
	if err != nil {
		writeOFREP(w, r, "", err)
		return
	}
	a.Meter.Count(p.tenant.ID(), evaluated)
	_, _ = hash.Write(out.b)
	tag := `"` + hex.EncodeToString(hash.Sum(nil)[:16]) + `"`
	w.Header().Set("ETag", tag)
	if noneMatch(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if !held {
		out.b = out.b[:0]
		if _, err := write(chunk, func() { e.send(r.Context(), out) }); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	e.leaveWorkSlot()
	out.send()
}
