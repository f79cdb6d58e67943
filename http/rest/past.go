package rest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

// FlagAtInput documents the parameters of a flag's historical state: a time or a version. MomentFromURL reads them.
type FlagAtInput struct {
	At      string `query:"at" format:"date-time" doc:"An RFC 3339 time that is past by the store's clock: the response shows the state at that time, by the recorded times of changes. For very recent times the call waits for changes that are being recorded, and is 503 if that takes too long"`
	Version int64  `query:"version" minimum:"1" doc:"A version of the flag: the response shows the state when the flag got it"`
}

// HistoryText describes the reads that support historical state.
const HistoryText = "With `at` or `version` the response has the current format and the historical values, without " +
	"`ETag`. It includes flags and environments that were deleted since. It is 404 if the flag or environment did not " +
	"exist at that time."

// HistoricalListInput selects the historical state of a list; the default is the current one.
type HistoricalListInput struct {
	At time.Time `query:"at" doc:"An RFC 3339 time that is past by the store's clock: the response shows the state at that time, by the recorded times of changes. Names, addresses and lastAccessedAt of people are current. Before the tenant was created the list is empty; the list of flags is 404, as there was no environment"`
}

// Resolve implements huma.Resolver.
func (in *HistoricalListInput) Resolve(ctx huma.Context) []error {
	asked := ctx.URL()
	if !asked.Query().Has("at") {
		return nil
	}
	if _, wrong := ParseAt(ctx.Query("at"), RequestOf(ctx.Context()).Now()); len(wrong) > 0 {
		return []error{&huma.ErrorDetail{Location: "query.at", Message: wrong["at"]}}
	}
	return nil
}

// MomentFromURL reads the historical moment of a call; past is false if it names none. Its error is a problem.
func MomentFromURL(u *url.URL, now time.Time) (m queries.Moment, past bool, err error) {
	if u.RawQuery == "" {
		return m, false, nil
	}
	wrong := map[string]string{}
	m, past = MomentFromQuery(u.Query(), now, wrong)
	if len(wrong) > 0 {
		return queries.Moment{}, true, Invalid(wrong)
	}
	return m, past, nil
}

// MomentFromQuery reads the historical moment of a query and adds its errors to wrong.
func MomentFromQuery(query url.Values, now time.Time, wrong map[string]string) (m queries.Moment, past bool) {
	byTime, byVersion := query.Has("at"), query.Has("version")
	if byTime {
		var unreadable map[string]string
		m.At, unreadable = ParseAt(query.Get("at"), now)
		maps.Copy(wrong, unreadable)
	}
	if byVersion {
		n, err := strconv.ParseInt(query.Get("version"), 10, 64)
		if m.Version = events.Revision(n); err != nil || n < 1 {
			wrong["version"] = "must be a whole number of at least 1"
		}
	}
	if byTime && byVersion {
		wrong["version"] = "is not allowed with at: send one of them"
	}
	return m, byTime || byVersion
}

// ParseAt parses the parameter at. wrong holds its error, if any.
func ParseAt(text string, now time.Time) (at time.Time, wrong map[string]string) {
	at, err := queries.ParseTime(text, now)
	if err != nil {
		return at, map[string]string{"at": err.Error()}
	}
	return at, map[string]string{}
}

// isHistorical reports whether a call has at or version, valid or not.
func isHistorical(u *url.URL) bool {
	if u.RawQuery == "" {
		return false
	}
	query := u.Query()
	return query.Has("at") || query.Has("version")
}

// FlagAt reads the historical state of a flag, and finds the environment that had a name at that time. The caller must
// wait until environments are current.
func (a *Core) FlagAt(
	ctx context.Context, tenantID, key, environment string, m queries.Moment,
) (f state.Flag, in state.Environment, err error) {
	if f, err = a.Queries.FlagAt(ctx, tenantID, key, m); err != nil {
		return f, in, err
	}
	in, err = a.FindEnvironmentAt(ctx, tenantID, environment, m.Time(f))
	return f, in, err
}

// FindEnvironmentAt finds the environment of a tenant that had a name at a time; an empty name means production.
func (a *Core) FindEnvironmentAt(
	ctx context.Context, tenantID, name string, at time.Time,
) (in state.Environment, err error) {
	err = queries.ErrNotFound
	if utf8.ValidString(name) { // headers may hold other bytes
		in, err = a.Queries.EnvironmentAt(ctx, tenantID, cmp.Or(name, events.DefaultEnvironment), at)
	}
	if errors.Is(err, queries.ErrNotFound) {
		return in, NewProblem(http.StatusNotFound, "the tenant had no such environment at that time")
	}
	return in, err
}

// EnvironmentIDAt returns the id of the environment that had the call's environment name at a time, or has it now if at
// is zero.
func (a *Core) EnvironmentIDAt(ctx context.Context, name string, at time.Time) (id string, err error) {
	p := PrincipalOf(ctx)
	if at.IsZero() {
		return p.Environment.ID, nil
	}
	if err := a.Queries.WaitUntilCurrent(ctx, at, "tenant."); err != nil {
		return "", err
	}
	environment, err := a.FindEnvironmentAt(ctx, p.Tenant.ID(), name, at)
	return environment.ID, err
}
