package http

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/projections/snapshot"
)

// access says who may call an operation. The zero access lets nobody in: an operation without one does not start.
type access struct {
	// who is the least that a caller must be.
	who caller
	// tenantHeader says that X-Tenant-ID must be sent.
	tenantHeader bool
	// environment says that the call is about one environment, from X-Environment.
	environment bool
}

type caller int

const (
	anyone caller = iota + 1
	person        // who is signed in
	viewer        // of the tenant of the call, as are the next
	developer
	admin
)

var callerRoles = map[events.Role]caller{events.ViewerRole: viewer, events.DeveloperRole: developer, events.AdminRole: admin}

// principal is who makes a call, and where.
type principal struct {
	claims      commands.Claims
	tenant      *snapshot.Tenant // nil where the call is about no tenant
	role        events.Role      // in the tenant
	environment events.EnvironmentRef
}

type principalKey struct{}

func principalOf(ctx context.Context) *principal { return ctx.Value(principalKey{}).(*principal) }

// by is the metadata of what a call changes.
func by(ctx context.Context) commands.By {
	req := requestOf(ctx)
	return commands.By{
		Actor:         events.Actor{Kind: events.UserActor, ID: principalOf(ctx).claims.UserID},
		RequestID:     req.id,
		CorrelationID: req.correlation,
		Reason:        req.reason,
	}
}

// admit finds out who makes a request and whether he may. pathTenant is the tenant that the path names, empty where it names none.
func (a *API) admit(r *http.Request, need access, pathTenant string) (*principal, error) {
	p := &principal{}
	if need.who == anyone {
		return p, nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, newProblem(http.StatusUnauthorized, "the request needs Authorization: Bearer with a token")
	}
	claims, err := a.tokens.verify(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if a.queries.Live().SessionEnded(claims.UserID, claims.SessionID) {
		return nil, newProblem(http.StatusUnauthorized, "the session has ended")
	}
	p.claims = claims
	sent := r.Header.Get("X-Tenant-ID")
	if need.tenantHeader && sent == "" {
		return nil, newProblem(http.StatusBadRequest, "the header X-Tenant-ID is required")
	}
	if need.who == person {
		return p, nil
	}
	if err := a.enter(p, need, sent, pathTenant); err != nil {
		return nil, err
	}
	if need.environment {
		name := r.Header.Get("X-Environment")
		if err := p.choose(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// enter finds the tenant of a call and the caller's role in it. Whoever is no member is told the same of a tenant that exists and of one
// that does not.
func (a *API) enter(p *principal, need access, sent, pathTenant string) error {
	id := pathTenant
	switch {
	case pathTenant != "" && sent != "" && sent != pathTenant:
		return newProblem(http.StatusBadRequest, "X-Tenant-ID names another tenant than the path")
	case pathTenant == "" && sent != "":
		id = sent
	case pathTenant == "":
		tenants := a.queries.Live().User(p.claims.UserID).Tenants
		if len(tenants) == 0 {
			return newProblem(http.StatusForbidden, "the caller is a member of no tenant")
		}
		id = tenants[0]
	}
	tenant, ok := a.queries.Live().Tenant(id)
	if ok {
		p.role, ok = tenant.Role(p.claims.UserID)
	}
	if !ok {
		return newProblem(http.StatusForbidden, "the caller is no member of the tenant")
	}
	if callerRoles[p.role] < need.who {
		return newProblem(http.StatusForbidden, "the role "+string(p.role)+" does not allow it")
	}
	p.tenant = tenant
	if sent != "" {
		a.directory.NoteUse(p.claims.UserID, tenant.ID())
	}
	return nil
}

const defaultEnvironment = "production"

// choose finds the environment of a call; an empty name stands for production.
func (p *principal) choose(name string) error {
	if name == "" {
		name = defaultEnvironment
	}
	environment, ok := p.tenant.Environment(name)
	if !ok {
		return newProblem(http.StatusNotFound, "the tenant has no such environment")
	}
	p.environment = environment
	return nil
}

// TenantInput shows the header that chooses the tenant of a call. admit has read it by the time that an operation runs.
type TenantInput struct {
	TenantID string `header:"X-Tenant-ID" doc:"The tenant of the call; without it the caller's first tenant, where the header is not required"`
}

// EnvironmentInput shows the headers that choose the tenant and the environment of a call.
type EnvironmentInput struct {
	TenantInput
	Environment string `header:"X-Environment" doc:"The environment of the call: production without it"`
}

// ChangeInput shows the header that every change takes.
type ChangeInput struct {
	Reason string `header:"X-Change-Reason" maxLength:"500" doc:"Why, for the history"`
}

// register adds an operation that only those may call whom its access lets in.
func register[I, O any](a *API, need access, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	if need.who == 0 {
		panic("the operation " + op.Method + " " + op.Path + " says nothing of who may call it")
	}
	op.MaxBodyBytes = maxBody
	op.Errors = append(op.Errors, http.StatusBadRequest)
	if need.who != anyone {
		op.Security = []map[string][]string{{"bearer": {}}}
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden)
	}
	op.Middlewares = append(op.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
		r, w := unwrap(ctx)
		p, err := a.admit(r, need, ctx.Param("tenantId"))
		if err == nil {
			err = checkMediaType(r)
		}
		if err != nil {
			writeProblem(w, r, problemOf(r.Context(), err))
			return
		}
		r.Header.Set("Content-Type", "application/json") // as huma knows it: without a parameter, in lower case
		next(huma.WithValue(ctx, principalKey{}, p))
	})
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, problemOf(ctx, err)
		}
		return out, nil
	})
	if need.tenantHeader {
		requireHeader(a.huma.OpenAPI(), op, "X-Tenant-ID")
	}
}

// requireHeader says in the document that a header must be sent. huma itself does not check it: admit does, before anything else is read.
func requireHeader(doc *huma.OpenAPI, op huma.Operation, name string) {
	item := doc.Paths[op.Path]
	for _, operation := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
		if operation == nil || operation.Method != op.Method {
			continue
		}
		i := slices.IndexFunc(operation.Parameters, func(p *huma.Param) bool { return p.Name == name })
		if i < 0 {
			panic("the operation " + op.Method + " " + op.Path + " does not show " + name)
		}
		operation.Parameters[i].Required = true
	}
}

// checkMediaType refuses bodies that are not JSON.
func checkMediaType(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return newProblem(http.StatusUnsupportedMediaType, "the body must be of the type application/json")
	}
	return nil
}
