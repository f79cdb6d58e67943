package http

import (
	"context"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// AtInput asks what an answer was at a time. Without it, it is what it is now.
type AtInput struct {
	At time.Time `query:"at" doc:"Answer as it was at this time, by the times at which changes were recorded. People's names, addresses and lastAccessedAt are today's"`
}

// Resolve implements huma.Resolver.
func (in *AtInput) Resolve(ctx huma.Context) []error {
	asked := ctx.URL()
	if !asksAt(&asked) {
		return nil
	}
	at, wrong := parseAt(ctx.Query("at"), requestOf(ctx.Context()).writer.api.Now())
	if len(wrong) > 0 {
		return []error{&huma.ErrorDetail{Location: "query.at", Message: wrong["at"]}}
	}
	if in.At = at; at.IsZero() { // the year 1, which is not the same as no time
		in.At = at.Add(time.Microsecond)
	}
	return nil
}

// asksAt reports whether a URL names a time.
func asksAt(u *url.URL) bool { return u.RawQuery != "" && u.Query().Has("at") }

// environmentThen is the id of the environment that bore a call's name of it at a time, or that bears it now.
func (a *API) environmentThen(ctx context.Context, name string, at time.Time) (id string, err error) {
	p := principalOf(ctx)
	if at.IsZero() {
		return p.environment.ID, nil
	}
	environment, err := a.pastEnvironment(ctx, p.tenant.ID(), name, at)
	return environment.ID, err
}
