package rest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
)

// guard runs before an operation.
type guard struct {
	api         *Core
	need        Access
	body        *huma.Schema // nil if the operation has none
	acceptsKeys bool         // Idempotency-Keys
	parameters  []string     // of the path
	times       []string     // the query parameters that are times
}

// steps lists what happens to a request before its operation, in order. After them huma reads the parameters and the
// body; inSlot waits for a slot and calls the operation.
func (g *guard) steps() huma.Middlewares {
	return huma.Middlewares{
		g.readPath,
		g.setCaching,
		g.authorize,
		check(g.checkMediaType),
		g.readBody,
		check(g.readCSV),
		g.replay,
		check(g.limitWritten),
		g.queueLargeChange,
		check(g.fitBody),
		g.checkQuery,
	}
}

// check returns a step that refuses the requests for which of returns an error.
func check(of func(context.Context, *http.Request) error) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := Unwrap(ctx)
		if err := of(ctx.Context(), r); err != nil {
			WriteProblem(w, r, ProblemOf(r.Context(), err))
			return
		}
		next(ctx)
	}
}

// readPath brings the parameters of the path into canonical form. An empty one finds nothing.
func (g *guard) readPath(ctx huma.Context, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	g.api.canonicalPath(r, g.parameters)
	if slices.ContainsFunc(g.parameters, func(name string) bool { return ctx.Param(name) == "" }) {
		NotFound(w, r)
		return
	}
	next(ctx)
}

// setCaching forbids caching of responses to changes, which may hold tokens or secrets. Browsers may cache responses to
// reads and must revalidate them.
func (g *guard) setCaching(ctx huma.Context, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	switch h := w.Header(); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Cache-Control", "no-store")
	case g.need.Who != Anyone:
		h.Set("Cache-Control", "private, no-cache")
		h.Add("Vary", "X-Tenant-ID, X-Environment, Authorization, X-API-Key")
	}
	next(ctx)
}

// authorize admits the caller. A retry of a request that ended the caller's own access gets its first response.
func (g *guard) authorize(ctx huma.Context, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	p, refusal := g.api.Admit(r, g.need, ctx.Param("tenantId"))
	if refusal == nil {
		next(huma.WithValue(ctx, principalKey{}, p))
		return
	}
	mayReplay := g.hasKey(r) && (g.need.EndsAccess || g.need.EndsSession) && CheckMediaType(r) == nil
	if !mayReplay || !g.api.replayRefused(ctx, g.need, refusal, next) {
		WriteProblem(w, r, ProblemOf(r.Context(), refusal))
	}
}

// checkMediaType refuses bodies that are neither JSON nor CSV that the operation accepts.
func (g *guard) checkMediaType(_ context.Context, r *http.Request) error {
	if g.need.FromCSV != nil && mediaType(r) == csvType {
		return nil
	}
	return CheckMediaType(r)
}

// readCSV turns a body of CSV into one of JSON.
func (g *guard) readCSV(_ context.Context, r *http.Request) error {
	if g.need.FromCSV == nil || mediaType(r) != csvType {
		return nil
	}
	text, err := bodyUpTo(r, g.need.MaxBody)
	if err != nil {
		return err
	}
	body, err := g.need.FromCSV(r.URL.Query(), text)
	if err != nil {
		return Invalid(map[string]string{"body": err.Error()})
	}
	r.Body, r.ContentLength = holdBody(body), int64(len(body))
	return nil
}

const csvType = "text/csv"

// mediaType returns the media type of a request's body in lower case.
func mediaType(r *http.Request) string {
	media, _, _ := strings.Cut(r.Header.Get(typeHeader), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// CheckMediaType refuses bodies that are not JSON.
func CheckMediaType(r *http.Request) error {
	if !peekBody(r) {
		return nil
	}
	if mediaType(r) != "application/json" {
		return NewProblem(http.StatusUnsupportedMediaType, "the body must be of the type application/json")
	}
	return nil
}

// readBody reads a body that may exceed LargeBody. A large one holds a slot of memory until the call ends. If the
// operation takes no body, only a small one is accepted.
func (g *guard) readBody(ctx huma.Context, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	leave, err := g.readLargeBody(r, PrincipalOf(ctx.Context()))
	if err != nil {
		WriteProblem(w, r, ProblemOf(r.Context(), err))
		return
	}
	defer leave()
	next(ctx)
}

func (g *guard) readLargeBody(r *http.Request, p *Principal) (leave func(), err error) {
	leave = func() {}
	switch {
	case r.ContentLength == 0:
		return leave, nil
	case g.body == nil:
		_, err = SmallBody(r)
		return leave, err
	case !MayBeLarge(r):
		return leave, nil
	}
	var body bytes.Buffer
	bodySlot, err := g.api.readBody(r, p, &body, g.need.MaxBody)
	if err != nil {
		return nil, err
	}
	r.Body = holdBody(body.Bytes())
	if bodySlot == nil {
		return leave, nil
	}
	RequestOf(r.Context()).largeBody = true
	return bodySlot.Leave, nil
}

// replay answers a request with an Idempotency-Key that was made before, and stores the response of a new one.
func (g *guard) replay(ctx huma.Context, next func(huma.Context)) {
	r, _ := Unwrap(ctx)
	if !g.hasKey(r) || RequestOf(r.Context()).Once != nil { // authorize has found its attempt
		next(ctx)
		return
	}
	p := PrincipalOf(ctx.Context())
	g.api.once(ctx, p, g.pastDailyBytes(p, true), next)
}

func (g *guard) hasKey(r *http.Request) bool {
	return g.acceptsKeys && r.Header["Idempotency-Key"] != nil
}

// limitWritten refuses a change past the daily write quota. Of requests with an Idempotency-Key, replay refuses the new
// ones.
func (g *guard) limitWritten(ctx context.Context, r *http.Request) error {
	if RequestOf(r.Context()).Once != nil {
		return nil
	}
	return g.pastDailyBytes(PrincipalOf(ctx), false)
}

// pastDailyBytes returns the refusal of a change past the daily write quota, or nil: the tenant's, or the caller's if
// the call has no tenant. Reports of usage change nothing. Upgrades, and changes with neither a body nor an
// Idempotency-Key, remain possible past it at a low rate.
func (g *guard) pastDailyBytes(p *Principal, hasKey bool) error {
	switch {
	case !g.acceptsKeys || !hasKey && (p.Tenant == nil || g.need.Scope == events.FlagsEvaluate):
		return nil
	case p.Tenant == nil:
		return g.api.limitWrittenBy(p.Claims.UserID)
	case g.need.UpgradesPlan || g.body == nil && !hasKey:
		return g.api.limitToggles(p)
	default:
		return g.api.LimitWritten(p.Tenant.ID())
	}
}

// queueLargeChange waits for a slot of the processors if a change of flags has a large body, because its facts are
// large as well.
func (g *guard) queueLargeChange(ctx huma.Context, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	leave, err := g.enterLargeChange(ctx.Context())
	if err != nil {
		WriteProblem(w, r, ProblemOf(r.Context(), err))
		return
	}
	defer leave()
	next(ctx)
}

func (g *guard) enterLargeChange(ctx context.Context) (leave func(), err error) {
	if g.need.Scope != events.FlagsWrite || !RequestOf(ctx).largeBody {
		return func() {}, nil
	}
	return g.api.EnterChanges(ctx)
}

// fitBody parses the body and notes its wrong fields, which the operation's own errors join.
func (g *guard) fitBody(_ context.Context, r *http.Request) error {
	r.Header.Set("Content-Type", "application/json") // the exact form that huma requires
	if g.body == nil {
		return nil
	}
	return g.fit(r)
}

// checkQuery notes repeated and empty query parameters of reads, which huma ignores. Legacy paths are exempt. Times in
// the query may be in any format that the service reads.
func (g *guard) checkQuery(ctx huma.Context, next func(huma.Context)) {
	r, _ := Unwrap(ctx)
	noteWrongQuery(r)
	next(timesContext{ctx, g.times})
}

func noteWrongQuery(r *http.Request) {
	if r.URL.RawQuery == "" || r.Method != http.MethodGet && r.Method != http.MethodHead ||
		!strings.HasPrefix(r.URL.Path, "/api/v1/") {
		return
	}
	req := RequestOf(r.Context())
	for name, values := range r.URL.Query() {
		if text := WrongParameter(name, values); text != "" {
			if req.wrong == nil {
				req.wrong = map[string]string{}
			}
			req.wrong[name] = text
		}
	}
}

// WrongParameter returns the error of a repeated or empty query parameter, or "". An empty q is allowed.
func WrongParameter(name string, values []string) string {
	switch {
	case len(values) > 1:
		return "must be sent once"
	case values[0] == "" && name != "q":
		return "must not be empty"
	default:
		return ""
	}
}

// inSlot calls an operation in a slot of the queue that it belongs to.
func inSlot[O any](ctx context.Context, g *guard, method string, handle func() (*O, error)) (*O, error) {
	if method == http.MethodGet { // it has no body whose errors these could join
		if err := WrongFields(RequestOf(ctx).wrong); err != nil {
			return nil, err
		}
	}
	p := PrincipalOf(ctx)
	queue := g.api.queueOf(p, g.need, method)
	if queue == nil {
		return handle()
	}
	slot, err := g.api.EnterQueue(ctx, queue, p)
	if err != nil {
		return nil, err
	}
	defer slot.Leave()
	if queue == g.api.Queues.Database {
		RequestOf(ctx).readSlot = slot
		if err := g.api.LimitUnread(ctx); err != nil { // the caller may have more unread responses after the wait
			return nil, err
		}
	}
	return handle()
}
