package evaluation

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

// readEvaluateManyQuery reads the query of an evaluation of many flags, which takes only at and preview. Its error is a
// problem that names all wrong parameters.
func readEvaluateManyQuery(u *url.URL, now time.Time) (q evaluationQuery, err error) {
	query, wrong := u.Query(), map[string]string{}
	refuseOthers(query, wrong, "at", "version", "explain", "preview")
	q.moment, q.past = rest.MomentFromQuery(query, now, wrong)
	q.preview = readBool(query, "preview", wrong)
	for _, name := range []string{"version", "explain"} {
		if query.Has(name) {
			wrong[name] = "is only allowed for one flag"
		}
	}
	if len(wrong) > 0 {
		return q, rest.Invalid(wrong)
	}
	return q, nil
}

// evaluateManyAt answers with what flags served at a time: the named ones, or all that the tenant had. wrong is the
// error of the query, if any. Nothing is counted.
func (a *API) evaluateManyAt(w http.ResponseWriter, r *http.Request, at time.Time, wrong error) {
	p, e, err := a.admitEvaluation(r, evaluateManyAccess, readEvaluateMany, a.evaluateManySchema)
	if err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	defer e.release()
	var past flagsAt
	if err = checkQuery(p, r.URL, wrong); err == nil {
		past, err = a.selectPast(r, p, e, at)
	}
	if err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	setEvaluatedAt(w, at)
	sendEvaluations(w, r, p, e, past.environment, past.evaluate(r.Context(), a, p, e, maxEvaluating), nil)
}

// flagsAt holds the historical flags and environment of an evaluation.
type flagsAt struct {
	flags       []queries.VersionThen
	environment state.Environment
	at          time.Time
}

// selectPast finds the flags and the environment at a time. The request then holds its slot. Its error is a problem or
// one of a query.
func (a *API) selectPast(r *http.Request, p *rest.Principal, e *evaluationRequest, at time.Time) (s flagsAt,
	err error) {
	ctx := r.Context()
	e.leaveWorkSlot()
	if err := a.Queries.WaitUntilCurrent(ctx, at, "tenant.", "flag.", "segment."); err != nil {
		return s, err
	}
	if err := a.takeWorkSlot(ctx, e, p); err != nil {
		return s, err
	}
	if s.environment, err = a.FindEnvironmentAt(ctx, p.Tenant.ID(), e.environmentOf(r), at); err != nil {
		return s, err
	}
	s.at, e.Now, e.Environment = at, at.UTC().Truncate(time.Microsecond), s.environment.Name
	s.flags, err = a.Queries.VersionsAt(ctx, p.Tenant.ID(), e.flagKeys, at)
	return s, err
}

// evaluate evaluates the flags. It ends early, with ErrTooSlow as the error of the last flag, when ctx ends, the flags
// cannot be read, or all has taken longer than atMost.
func (s flagsAt) evaluate(
	ctx context.Context, a *API, p *rest.Principal, e *evaluationRequest, atMost time.Duration,
) iter.Seq2[string, queries.Evaluated] {
	return func(yield func(string, queries.Evaluated) bool) {
		for _, f := range s.flags {
			began := time.Now()
			var answer queries.Evaluated
			flag, err := a.Queries.CompiledFlagAt(ctx, p.Tenant, f, s.environment.ID)
			if err == nil {
				id := s.environment.ID
				e.Dependencies, err = a.Queries.AddDependenciesAt(
					ctx, p.Tenant, e.Dependencies, flag.Requires(id), flag.Segments(id), id, s.at)
			}
			if answer.Err = err; err == nil {
				answer.Result, answer.Err = flag.Evaluate(s.environment.ID, &e.Context)
			}
			if atMost -= time.Since(began); atMost < 0 || ctx.Err() != nil || errors.Is(err, queries.ErrUnavailable) {
				yield(f.Key, queries.Evaluated{Err: queries.ErrTooSlow})
				return
			}
			if !yield(f.Key, answer) {
				return
			}
		}
	}
}
