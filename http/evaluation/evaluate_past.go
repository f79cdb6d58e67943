package evaluation

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/queries"
)

// setEvaluatedAt sets the header to the time of a historical evaluation: with six digits, as in facts, or with more if
// the caller sent more.
func setEvaluatedAt(w http.ResponseWriter, at time.Time) {
	format := events.RecordedFormat
	if !at.Equal(at.Truncate(time.Microsecond)) {
		format = time.RFC3339Nano
	}
	w.Header()[rest.EvaluatedAtHeader] = []string{at.UTC().Format(format)}
}

// maxClockLead limits how far the clock of the node that gave an answer may be ahead of this node's.
const maxClockLead = time.Minute

// evaluationQuery is the parsed query of an evaluation.
type evaluationQuery struct {
	moment   queries.Moment
	past     bool
	explain  bool
	revision string    // that the answer must have; empty for any
	now      time.Time // of the evaluation; zero for the moment
	preview  bool      // counts nothing
}

// time returns the time of a historical evaluation. f is the flag at its moment.
func (q *evaluationQuery) time(f state.Flag) time.Time {
	if q.now.IsZero() {
		return q.moment.Time(f)
	}
	return q.now
}

// readEvaluationQuery reads the query of an evaluation. Its error is a problem that names all wrong parameters.
func readEvaluationQuery(u *url.URL, now time.Time) (q evaluationQuery, err error) {
	query, wrong := u.Query(), map[string]string{}
	if strings.HasPrefix(u.Path, "/api/v1/") { // the old path ignores them
		refuseOthers(query, wrong, "at", "version", "revision", "explain", "preview")
	}
	q.moment, q.past = rest.MomentFromQuery(query, now, wrong)
	q.readRevision(query, wrong)
	q.explain = readBool(query, "explain", wrong)
	q.preview = readBool(query, "preview", wrong)
	if len(wrong) > 0 {
		return q, rest.Invalid(wrong)
	}
	return q, nil
}

// checkQuery returns the error of a query, or why the caller may not ask it.
func checkQuery(p *rest.Principal, u *url.URL, wrong error) error {
	return cmp.Or(checkKeyQuery(p, u), wrong, p.RequireFlagsRead())
}

// checkKeyQuery refuses an evaluation key that asks for more than the current state.
func checkKeyQuery(p *rest.Principal, u *url.URL) error {
	more := []string{"at", "version", "revision", "explain", "preview"}
	if u.RawQuery != "" && p.EvaluationKey() != nil && slices.ContainsFunc(more, u.Query().Has) {
		return rest.NewProblem(http.StatusForbidden, "evaluation keys evaluate the current state only")
	}
	return nil
}

// readRevision reads the revision of a query, if it has one.
func (q *evaluationQuery) readRevision(query url.Values, wrong map[string]string) {
	if _, noted := wrong["revision"]; noted || !query.Has("revision") {
		return
	}
	r, ok := parseRevision(query.Get("revision"))
	switch {
	case q.past:
		wrong["revision"] = "is not allowed with at or version: send one of them"
	case !ok:
		wrong["revision"] = "must be the revision of an answer, such as 7 or 7@2026-03-14T15:09:26.535000Z"
	}
	q.past, q.revision, q.now = true, query.Get("revision"), r.now
	if q.moment.At = r.newest; r.newest.IsZero() {
		q.moment.Version = r.version
	}
}

// readBool reads a boolean parameter, false by default. It adds an invalid one to wrong.
func readBool(query url.Values, name string, wrong map[string]string) bool {
	text := query.Get(name)
	if _, noted := wrong[name]; !noted && text != "" && text != "true" && text != "false" {
		wrong[name] = "must be true or false"
	}
	return text == "true"
}

// refuseOthers adds to wrong the parameters of a query that are unknown, repeated or empty.
func refuseOthers(query url.Values, wrong map[string]string, taken ...string) {
	for name, values := range query {
		if !slices.Contains(taken, name) {
			wrong[name] = rest.UnknownParameter
		} else if text := rest.WrongParameter(name, values); text != "" {
			wrong[name] = text
		}
	}
}

// evaluateQuery answers an evaluation with at, version or explain. wrong is the error of the query, if any. Nothing is
// counted.
func (a *API) evaluateQuery(
	w http.ResponseWriter, r *http.Request, need rest.Access, query evaluationQuery, wrong error,
	read func(*evaluationRequest) error, schema *huma.Schema,
) error {
	p, e, err := a.admitEvaluation(r, need, read, schema)
	if err != nil {
		return err
	}
	defer e.release()
	if err := checkQuery(p, r.URL, wrong); err != nil {
		return err
	}
	if query.now.After(a.Now().Add(maxClockLead)) {
		return queries.ErrNotFound // no answer had it
	}
	flag, environment, err := a.flagOfQuery(r, p, e, query)
	if err != nil {
		return err
	}
	result, explanation, err := evaluation.Explain(flag, environment.ID, &e.Context)
	if err != nil {
		return err
	}
	if query.revision != "" {
		revision := revisionOf(&result, &environment)
		if query.revision != revision.String() || revision.ambiguous(&flag, &environment, e.Dependencies) {
			return queries.ErrNotFound // no answer had it, or it may have been another one
		}
	}
	if query.past {
		setEvaluatedAt(w, query.time(flag))
	}
	shown := &explanation
	if !query.explain {
		shown = nil
	}
	e.answerWith(w, &result, &environment, shown)
	return nil
}

// answerWith answers with a result, as output.evaluation writes it, and, unless it is nil, its explanation.
func (e *evaluationRequest) answerWith(
	w http.ResponseWriter, result *evaluation.Result, in *state.Environment, x *evaluation.Explanation,
) {
	out := newOutput(w)
	defer out.release()
	out.evaluation(result, in)
	if x != nil {
		out.explanation(*x)
	}
	e.leaveWorkSlot()
	out.send()
}

// flagOfQuery reads the state of the flag and the environment of an evaluation, which then holds its slot. Without a
// moment it is the state that this node serves.
func (a *API) flagOfQuery(
	r *http.Request, p *rest.Principal, e *evaluationRequest, query evaluationQuery,
) (f state.Flag, in state.Environment, err error) {
	key, m := pathKey(r, "flagKey"), query.moment
	if !query.past {
		if err := p.SelectEnvironment(e.environmentOf(r)); err != nil {
			return f, in, err
		}
		live, dependencies, ok := p.Tenant.FlagWithDependencies(key)
		if !ok {
			return f, in, queries.ErrNotFound
		}
		m.Version, e.Dependencies, e.Environment = live.Version(), dependencies, p.Environment.Name
	}
	e.leaveWorkSlot()
	if query.past {
		if err := a.Queries.WaitUntilCurrent(r.Context(), m.At, "tenant.", "flag.", "segment."); err != nil {
			if query.revision != "" && errors.Is(err, queries.ErrFuture) {
				err = queries.ErrNotFound
			}
			return f, in, err
		}
	}
	if err := a.takeWorkSlot(r.Context(), e, p); err != nil {
		return f, in, err
	}
	if query.past {
		f, in, err = a.FlagAt(r.Context(), p.Tenant.ID(), key, e.environmentOf(r), m)
		if err != nil {
			return f, in, err
		}
		at := m.Time(f)
		e.Now, e.Environment = query.time(f).UTC().Truncate(time.Microsecond), in.Name
		e.Dependencies, err = a.Queries.AddDependenciesAt(r.Context(), p.Tenant, nil, f.RequiredFlags(in.ID),
			state.SegmentsOf(f.Rules[in.ID]), in.ID, at)
		return f, in, err
	}
	f, err = a.Queries.FlagAt(r.Context(), p.Tenant.ID(), key, m)
	return f, p.Environment, err
}
