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

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
	"flagledger/queries"
)

// MomentInput shows the parameters that ask for a moment of the past, of a flag. momentOf reads them.
type MomentInput struct {
	At      string `query:"at" format:"date-time" doc:"A time of RFC 3339 that is past: the answer is the one that the service would have given then. It goes by the time at which the store recorded changes"`
	Version int64  `query:"version" minimum:"1" doc:"A version of the flag: the answer is the one that the service would have given once the flag had it"`
}

// pastRead describes the reads that take a moment of the past.
const pastRead = "With `at` or `version` the answer is today's of then: that of a flag or an environment that is gone since, too, and without `ETag`. " +
	"It is 404 where there was no such flag or environment then."

// momentOf reads the moment of the past that a call asks for; past is false where it asks for none. Its error is a problem.
func momentOf(u *url.URL, now time.Time) (m queries.Moment, past bool, err error) {
	if u.RawQuery == "" {
		return m, false, nil
	}
	wrong := map[string]string{}
	m, past = momentIn(u.Query(), now, wrong)
	if len(wrong) > 0 {
		return queries.Moment{}, true, invalid(wrong)
	}
	return m, past, nil
}

// momentIn reads the moment of the past that a query asks for, and notes what is wrong with it.
func momentIn(query url.Values, now time.Time, wrong map[string]string) (m queries.Moment, past bool) {
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

// notRFC3339 says what a text is not.
const notRFC3339 = "must be a time of RFC 3339, such as 2026-03-14T15:09:26.535Z"

// parseAt reads a time that is past. wrong is empty, or says what is wrong with it.
func parseAt(text string, now time.Time) (at time.Time, wrong map[string]string) {
	at, readable := rules.ParseTime(text)
	switch {
	case !readable:
		return at, map[string]string{"at": notRFC3339}
	case at.After(now):
		return at, map[string]string{"at": "must not be in the future"}
	}
	return at, map[string]string{}
}

// asksForPast reports whether a call asks for a moment of the past, readable or not.
func asksForPast(u *url.URL) bool {
	if u.RawQuery == "" {
		return false
	}
	query := u.Query()
	return query.Has("at") || query.Has("version")
}

// pastFlag reads a flag as it was at a moment, and finds the environment that bore a name then.
func (a *API) pastFlag(ctx context.Context, tenantID, key, environment string, m queries.Moment) (f state.Flag, in events.EnvironmentRef, err error) {
	if f, err = a.Queries.FlagAt(ctx, tenantID, key, m); err != nil {
		return f, in, err
	}
	at := m.At
	if m.Version > 0 {
		at = f.Recorded
	}
	in, err = a.pastEnvironment(ctx, tenantID, environment, at)
	return f, in, err
}

// pastEnvironment finds the environment of a tenant that bore a name at a time; an empty name stands for production.
func (a *API) pastEnvironment(ctx context.Context, tenantID, name string, at time.Time) (events.EnvironmentRef, error) {
	in, err := a.Queries.EnvironmentAt(ctx, tenantID, cmp.Or(name, events.DefaultEnvironment), at)
	if errors.Is(err, queries.ErrNotFound) {
		return in, newProblem(http.StatusNotFound, "the tenant had no such environment then")
	}
	return in, err
}

// FlagRead names a flag, the environment that it is seen in, and the moment.
type FlagRead struct {
	FlagPath
	MomentInput
}

// past reads the flag as it was at the moment that the call asks for; asked is false where it asks for none.
func (in FlagRead) past(ctx context.Context, a *API) (f state.Flag, environment events.EnvironmentRef, asked bool, err error) {
	m, asked, err := momentOf(requestOf(ctx).url, a.Now())
	if err != nil || !asked {
		return f, environment, asked, err
	}
	f, environment, err = a.pastFlag(ctx, principalOf(ctx).tenant.ID(), in.Key, in.Environment, m)
	if err == nil && in.ProjectID != "" && f.ProjectID != in.ProjectID {
		err = queries.ErrNotFound
	}
	return f, environment, true, err
}
