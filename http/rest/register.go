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

// Register adds an operation under its path and its legacy paths. It panics if need.Who is not set.
func Register[I, O any](a *Core, need Access, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	for _, old := range Aliases(op) {
		serve(a, need, old, handle)
	}
	serve(a, need, op, handle)
}

func serve[I, O any](a *Core, need Access, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	if need.Who == 0 || need.Scope != "" && need.Who < Viewer {
		panic("the operation " + op.Method + " " + op.Path + " does not define who may call it")
	}
	op.MaxBodyBytes, op.SkipValidateBody = maxBody, true
	// The guard has read the body. A deadline would cancel this and later requests of the connection.
	op.BodyReadTimeout = -1
	op.Errors = append(slices.Clone(op.Errors), http.StatusUnprocessableEntity)
	if need.Who != Anyone {
		op.Security = need.Security()
	}
	if op.Method == http.MethodGet {
		need.Unverified = true
	}
	g := &guard{
		api:        a,
		need:       need,
		honoursKey: need.Who != Anyone && op.Method != http.MethodGet,
		parameters: pathParameters(op.Path),
	}
	if g.honoursKey {
		op.Parameters = append(slices.Clone(op.Parameters), keyParameter)
	}
	op.Middlewares = slices.Concat(op.Middlewares, huma.Middlewares{g.serve})
	huma.Register(a.Huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := func() (*O, error) {
			if op.Method == http.MethodGet { // it has no body whose errors these could join
				if err := WrongFields(RequestOf(ctx).wrong); err != nil {
					return nil, err
				}
			}
			p := PrincipalOf(ctx)
			queue := a.queueOf(p, need, op.Method)
			if queue == nil {
				return handle(ctx, in)
			}
			slot, err := a.EnterQueue(ctx, queue, p)
			if err != nil {
				return nil, err
			}
			defer slot.Leave()
			if queue == a.Queues.Database {
				RequestOf(ctx).readSlot = slot
				if err := a.LimitUnread(ctx); err != nil { // the caller may have more unread responses after the wait
					return nil, err
				}
			}
			return handle(ctx, in)
		}()
		if err := AddBodyErrors(ctx, err); err != nil {
			return nil, ProblemOf(ctx, err)
		}
		return out, nil
	})
	documented := documentedOperation(a.Huma.OpenAPI(), op)
	g.times = timesOf(documented)
	if documented.RequestBody != nil {
		g.body = documented.RequestBody.Content["application/json"].Schema
	}
	if need.RequireTenant {
		requireHeader(documented, "X-Tenant-ID")
	}
}

// guard runs before an operation: it checks the access, reads the body, and replays the response of a retry with an
// Idempotency-Key.
type guard struct {
	api        *Core
	need       Access
	body       *huma.Schema // nil if the operation has none
	honoursKey bool
	parameters []string // of the path
	times      []string // the query parameters that are times
}

func (g *guard) serve(ctx huma.Context, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	g.api.canonicalPath(r, g.parameters)
	if slices.ContainsFunc(g.parameters, func(name string) bool { return ctx.Param(name) == "" }) {
		NotFound(w, r)
		return
	}
	g.setCaching(r.Method, w.Header())
	p, refusal := g.api.Admit(r, g.need, ctx.Param("tenantId"))
	bearsKey := g.honoursKey && r.Header["Idempotency-Key"] != nil
	handle := func(ctx huma.Context) { g.checkBodyAndCall(ctx, next) }
	mayReplay := bearsKey && (g.need.EndsAccess || g.need.EndsSession)
	if refusal != nil && mayReplay && CheckMediaType(r) == nil && g.api.replayRefused(ctx, g.need, refusal, handle) {
		return
	}
	if refusal == nil {
		refusal = CheckMediaType(r)
	}
	if refusal != nil {
		WriteProblem(w, r, ProblemOf(r.Context(), refusal))
		return
	}
	ctx = huma.WithValue(ctx, principalKey{}, p)
	leave, err := g.readLargeBody(r, p)
	if err != nil {
		WriteProblem(w, r, ProblemOf(r.Context(), err))
		return
	}
	defer leave()
	if bearsKey {
		g.api.once(ctx, p, g.limitWritten(p, true), handle)
		return
	}
	handle(ctx)
}

// setCaching forbids caching of responses to changes, which may hold tokens or secrets. Browsers may cache responses to
// reads and must revalidate them.
func (g *guard) setCaching(method string, h http.Header) {
	switch {
	case method != http.MethodGet && method != http.MethodHead:
		h.Set("Cache-Control", "no-store")
	case g.need.Who != Anyone:
		h.Set("Cache-Control", "private, no-cache")
		h.Add("Vary", "X-Tenant-ID, X-Environment, Authorization, X-API-Key")
	}
}

// limitWritten refuses a change past the daily write quota: the tenant's, or the caller's if the call has no tenant.
// Upgrades, and changes with neither a body nor an Idempotency-Key, remain possible past it at a low rate.
func (g *guard) limitWritten(p *Principal, bearsKey bool) error {
	switch {
	case !g.honoursKey || p.Tenant == nil && !bearsKey:
		return nil
	case p.Tenant == nil:
		return g.api.limitWrittenBy(p.Claims.UserID)
	case g.need.Pays || g.body == nil && !bearsKey:
		return g.api.limitSwitches(p)
	default:
		return g.api.LimitWritten(p.Tenant.ID())
	}
}

// readLargeBody reads a body that may exceed LargeBody. A large one holds a slot of memory until leave is called. If
// the operation takes no body, only a small one is accepted. Its error is a *Problem.
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
	bodySlot, err := g.api.ReadBody(r, p, &body)
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

// enterLargeChange waits for a slot of the processors if a change of flags has a large body, because its facts are
// large as well. Its error is a *Problem.
func (g *guard) enterLargeChange(ctx context.Context) (leave func(), err error) {
	if g.need.Scope != events.FlagsWrite || !RequestOf(ctx).largeBody {
		return func() {}, nil
	}
	return g.api.EnterChanges(ctx)
}

// checkBodyAndCall checks the daily write quota, stores the schema errors of the body and calls the operation.
func (g *guard) checkBodyAndCall(ctx huma.Context, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	if RequestOf(r.Context()).Once == nil { // with an Idempotency-Key, serve has checked it
		if err := g.limitWritten(PrincipalOf(ctx.Context()), false); err != nil {
			WriteProblem(w, r, ProblemOf(r.Context(), err))
			return
		}
	}
	leave, err := g.enterLargeChange(ctx.Context())
	if err != nil {
		WriteProblem(w, r, ProblemOf(r.Context(), err))
		return
	}
	defer leave()
	r.Header.Set("Content-Type", "application/json") // the exact form that huma requires
	if g.body != nil {
		if err := g.api.fitBody(r, g.body); err != nil {
			WriteProblem(w, r, ProblemOf(r.Context(), err))
			return
		}
	}
	noteWrongQuery(r)
	next(timesContext{ctx, g.times})
}

// noteWrongQuery reports repeated and empty query parameters of reads, which huma ignores. Legacy paths are exempt.
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

// Security returns the security requirements of an operation for the OpenAPI document.
func (need Access) Security() []map[string][]string {
	ways := []map[string][]string{{"bearer": {}}}
	if need.Scope != "" {
		ways = append(ways, map[string][]string{"oauth": {string(need.Scope)}})
	}
	return ways
}

// pathParameters returns the names between braces in a path.
func pathParameters(path string) (names []string) {
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// documentedOperation returns an operation in the OpenAPI document.
func documentedOperation(doc *huma.OpenAPI, op huma.Operation) *huma.Operation {
	all := operationsOf(doc.Paths[op.Path])
	return all[slices.IndexFunc(all, func(o *huma.Operation) bool { return o.Method == op.Method })]
}

// requireHeader marks a header as required in the OpenAPI document. Admit enforces it, not huma.
func requireHeader(op *huma.Operation, name string) {
	i := slices.IndexFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == name })
	if i < 0 {
		panic("the operation " + op.Method + " " + op.Path + " does not show " + name)
	}
	op.Parameters[i].Required = true
}

// CheckMediaType refuses bodies that are not JSON.
func CheckMediaType(r *http.Request) error {
	if !peekBody(r) {
		return nil
	}
	media, _, _ := strings.Cut(r.Header.Get(typeHeader), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return NewProblem(http.StatusUnsupportedMediaType, "the body must be of the type application/json")
	}
	return nil
}
