package http

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

// FlagAtInput shows the parameters that ask for a moment of the past of a flag, which has versions beside times.
// readMoment reads them.
type FlagAtInput struct {
	At      string `query:"at" format:"date-time" doc:"A time of RFC 3339 that is past by the store's clock: the answer is the one that the service would have given then, by the times at which the store recorded changes. About the last moments it waits for changes that are being recorded, and is 503 if that takes too long"`
	Version int64  `query:"version" minimum:"1" doc:"A version of the flag: the answer is the one that the service would have given once the flag had it"`
}

// pastRead describes the reads that take a moment of the past.
const pastRead = "With `at` or `version` the answer has today's form and the values of then, without `ETag`. It " +
	"includes flags and environments that are gone since. " +
	"It is 404 where there was no such flag or environment then."

// PastListInput asks what a list was at a time. Without it, it is what it is now.
type PastListInput struct {
	At time.Time `query:"at" doc:"A time of RFC 3339 that is past by the store's clock: the answer is as it was then, by the times at which changes were recorded. People's names, addresses and lastAccessedAt are today's. Before there was the tenant it had nothing: the list is empty, and that of flags 404, as there was no environment"`
}

// Resolve implements huma.Resolver.
func (in *PastListInput) Resolve(ctx huma.Context) []error {
	asked := ctx.URL()
	if !asked.Query().Has("at") {
		return nil
	}
	if _, wrong := parseAt(ctx.Query("at"), requestOf(ctx.Context()).writer.api.Now()); len(wrong) > 0 {
		return []error{&huma.ErrorDetail{Location: "query.at", Message: wrong["at"]}}
	}
	return nil
}

// readMoment reads the moment of the past that a call asks for; past is false where it asks for none. Its error is a
// problem.
func readMoment(u *url.URL, now time.Time) (m queries.Moment, past bool, err error) {
	if u.RawQuery == "" {
		return m, false, nil
	}
	wrong := map[string]string{}
	m, past = readMomentOf(u.Query(), now, wrong)
	if len(wrong) > 0 {
		return queries.Moment{}, true, invalid(wrong)
	}
	return m, past, nil
}

// readMomentOf reads the moment of the past that a query asks for, and notes what is wrong with it.
func readMomentOf(query url.Values, now time.Time, wrong map[string]string) (m queries.Moment, past bool) {
	byTime, byVersion := query.Has("at"), query.Has("version")
	if byTime {
		var unreadable map[string]string
		m.At, unreadable = parseAt(query.Get("at"), now)
		maps.Copy(wrong, unreadable)
	}
	if byVersion {
		n, err := strconv.ParseInt(query.Get("version"), 10, 64)
		if m.Version = events.Revision(n); err != nil || n < 1 {
			wrong["version"] = "must be a whole number from 1 on"
		}
	}
	if byTime && byVersion {
		wrong["version"] = "goes without at: send one of them"
	}
	return m, byTime || byVersion
}

// parseAt reads a time as queries.ParseTime does. wrong is empty, or says what is wrong with it.
func parseAt(text string, now time.Time) (at time.Time, wrong map[string]string) {
	at, err := queries.ParseTime(text, now)
	if err != nil {
		return at, map[string]string{"at": err.Error()}
	}
	return at, map[string]string{}
}

// isHistorical reports whether a call asks for a moment of the past, readable or not.
func isHistorical(u *url.URL) bool {
	if u.RawQuery == "" {
		return false
	}
	query := u.Query()
	return query.Has("at") || query.Has("version")
}

// flagAt reads a flag as it was at a moment, and finds the environment that bore a name then. What waits until
// environments are current comes before it.
func (a *API) flagAt(
	ctx context.Context, tenantID, key, environment string, m queries.Moment,
) (f state.Flag, in events.EnvironmentRef, err error) {
	if f, err = a.Queries.FlagAt(ctx, tenantID, key, m); err != nil {
		return f, in, err
	}
	in, err = a.pastEnvironment(ctx, tenantID, environment, m.Time(f))
	return f, in, err
}

// pastEnvironment finds the environment of a tenant that bore a name at a time, as flagAt does; an empty name stands
// for production.
func (a *API) pastEnvironment(
	ctx context.Context, tenantID, name string, at time.Time,
) (in events.EnvironmentRef, err error) {
	err = queries.ErrNotFound
	if utf8.ValidString(name) { // as a header may not be
		in, err = a.Queries.EnvironmentAt(ctx, tenantID, cmp.Or(name, events.DefaultEnvironment), at)
	}
	if errors.Is(err, queries.ErrNotFound) {
		return in, newProblem(http.StatusNotFound, "the tenant had no such environment then")
	}
	return in, err
}

// environmentAt is the id of the environment that bore a call's name of it at a time, or that bears it now.
func (a *API) environmentAt(ctx context.Context, name string, at time.Time) (id string, err error) {
	p := principalOf(ctx)
	if at.IsZero() {
		return p.environment.ID, nil
	}
	if err := a.Queries.WaitUntilCurrent(ctx, at, "tenant."); err != nil {
		return "", err
	}
	environment, err := a.pastEnvironment(ctx, p.tenant.ID(), name, at)
	return environment.ID, err
}

// FlagRead names a flag, the environment that it is seen in, and the moment.
type FlagRead struct {
	FlagPath
	FlagAtInput
}

// past reads the flag as it was at the moment that the call asks for; asked is false where it asks for none.
func (in FlagRead) past(
	ctx context.Context, a *API,
) (f state.Flag, environment events.EnvironmentRef, asked bool, err error) {
	m, asked, err := readMoment(requestOf(ctx).url, a.Now())
	if err != nil || !asked {
		return f, environment, asked, err
	}
	slot, err := a.enterPastOnceCurrent(ctx, m.At)
	if err != nil {
		return f, environment, true, err
	}
	defer slot.Leave()
	f, environment, err = a.flagAt(ctx, principalOf(ctx).tenant.ID(), in.Key, in.Environment, m)
	if err == nil && in.ProjectID != "" && f.ProjectID != in.ProjectID {
		err = queries.ErrNotFound
	}
	return f, environment, true, err
}
