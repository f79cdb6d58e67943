package evaluation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"flagledger/commands"
	"flagledger/http/rest"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage"
	"flagledger/queries"
)

// maxHeld is the largest response, in bytes, that is buffered until its tag is known. A larger one is evaluated twice.
const maxHeld = 256 << 10

// ofrepEvaluateMany answers with what all flags of the tenant serve, or 304 if the client has that already.
func (a *API) ofrepEvaluateMany(w http.ResponseWriter, r *http.Request) {
	p, e, err := a.readOFREPEvaluation(r, "flagConfigEtag", "flagConfigLastModified")
	if err != nil {
		rest.WriteOFREP(w, r, "", err)
		return
	}
	defer e.release()
	e.leaveWorkSlot()
	a.catchUp(r, p)
	if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
		rest.WriteOFREP(w, r, "", err)
		return
	}
	stream, err := a.StreamURL(r, p)
	// without a stream, clients poll
	if refusal, ok := errors.AsType[*commands.Error](err); err != nil && (!ok || refusal.Kind != commands.Unavailable) {
		rest.WriteOFREP(w, r, "", err)
		return
	}
	out := newOutput(w)
	defer out.release()
	used := &uncounted{usage.Call{All: true}, a, p}
	flags := ofrepFlags{queries.Select(p.Tenant, nil, p.Sees), p, e, stream, out}
	tag, whole, err := flags.gather(r.Context(), used)
	if err != nil {
		rest.WriteOFREP(w, r, "", err)
		return
	}
	used.count()
	w.Header().Set("ETag", tag)
	if rest.NoneMatch(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if !whole {
		out.b = out.b[:0]
		if err := flags.write(r.Context(), nil, chunk, func() { e.send(r.Context(), out) }); err != nil {
			rest.AbortResponse() // the status has been sent
		}
	}
	e.leaveWorkSlot()
	out.send()
}

// ofrepFlags writes what all flags of a tenant serve.
type ofrepFlags struct {
	selected queries.Selection
	p        *rest.Principal
	e        *evaluationRequest
	stream   string // its URL, empty without one
	out      *output
}

// gather builds the response and its tag, and adds the flags to used. If the response is larger than maxHeld, whole is
// false and out has only its end.
//
// The tag covers the stream's URL, so that a client with a new token gets the new URL before the old one expires.
func (f *ofrepFlags) gather(ctx context.Context, used *uncounted) (tag string, whole bool, err error) {
	hash := sha256.New()
	whole = true
	err = f.write(ctx, used, maxHeld, func() {
		whole = false
		_, _ = hash.Write(f.out.b)
		f.out.b = f.out.b[:0]
	})
	_, _ = hash.Write(f.out.b)
	return `"` + hex.EncodeToString(hash.Sum(nil)[:16]) + `"`, whole, err
}

// write appends the response and calls full whenever the buffer reaches size. It adds the flags to used, unless that is
// nil.
func (f *ofrepFlags) write(ctx context.Context, used *uncounted, size int, full func()) error {
	f.out.text(`{"metadata":{`)
	f.out.flagSet(f.p)
	f.out.text(`},"flags":[`)
	separator := ""
	for key, answer := range f.selected.Evaluate(ctx, f.p.Environment, &f.e.Context, maxEvaluating) {
		if f.e.workSlot.Pace(ctx) != nil {
			rest.AbortResponse() // the client has gone
		}
		err := hideFromBrowser(f.p, &answer.Result, answer.Err)
		switch {
		case errors.Is(err, queries.ErrTooSlow):
			return err
		case answer.Reason == evaluation.Archived:
			continue
		case err != nil:
			f.out.text(separator)
			f.out.json(rest.OFREPErrorOf(ctx, key, err).Of(key))
		default:
			f.out.text(separator)
			f.out.ofrep(key, answer.Flag, &answer.Result, f.p, false)
			used.add(&answer, &f.e.Context)
		}
		separator = ","
		if len(f.out.b) >= size {
			full()
		}
	}
	f.out.text(`],"eventStreams":[`)
	if f.stream != "" {
		f.out.text(`{"type":"sse","url":`)
		f.out.quote(f.stream)
		f.out.text("}")
	}
	f.out.text("]}")
	return nil
}
