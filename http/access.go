package http

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// access says who may call an operation. The zero access lets nobody in: an operation without one does not start.
type access struct {
	// who is the least that a person must be.
	who callerLevel
	// scope is what a machine needs. Without one no machine may call the operation.
	scope events.Scope
	// platform is the least role on the platform that a person must have; empty where none is needed.
	platform events.PlatformRole
	// requireTenant says that X-Tenant-ID must be sent.
	requireTenant bool
	// environment says that the call is about one environment, from X-Environment.
	environment bool
	// allEnvironments says that it may be about all of the tenant's instead, for which X-Environment is *. The principal
	// has no environment then.
	allEnvironments bool
	// past says that the call may ask for a moment of the past: its environment may be one that the tenant no longer has,
	// and the operation finds it.
	past bool
	// unverified says that a person may call it whose address is not verified: it changes nothing, signs out, or has a
	// link mailed.
	unverified bool
	// endsAccess says that the call may take the caller's own role, endsSession that it ends their session: a replay with
	// its Idempotency-Key is answered all the same.
	endsAccess, endsSession bool
	// pays says that the call leads to a higher plan: it is made as long as flags are switched, however much the tenant
	// has written today.
	pays bool
	// alone says that one such call of a tenant, or of a site where anyone may make it, goes on at once: it asks the
	// database for much.
	alone bool
}

// ofTenant reports whether the call is about a tenant.
func (need access) ofTenant() bool { return need.platform == "" && need.who > person }

// callerLevel is who may make a call: each level may do what those before it may.
type callerLevel int

const (
	anyone callerLevel = iota + 1
	person             // who is signed in
	viewer             // of the tenant of the call, as are the next
	developer
	admin
)

var levelOfRole = map[events.Role]callerLevel{
	events.ViewerRole:    viewer,
	events.DeveloperRole: developer,
	events.AdminRole:     admin,
}

// principal is who makes a call, and where.
type principal struct {
	*credential
	tenant      *snapshot.Tenant // nil where the call is about no tenant
	role        events.Role      // of a person in the tenant
	environment events.EnvironmentRef
}

// tenantID is empty where the call is about no tenant.
func (p *principal) tenantID() string {
	if p.tenant == nil {
		return ""
	}
	return p.tenant.ID()
}

// credential is what a token proves: who a person is, or which machine calls.
type credential struct {
	claims  commands.Claims // of a person
	machine *machine        // nil for a person
	expires time.Time

	stream atomic.Pointer[streamURL] // the last one that was made for it
}

// machine is an OAuth client with a token for some of its scopes.
type machine struct {
	clientID string
	tenantID string
	scopes   []events.Scope
}

// nobody is who calls an operation that anyone may call.
var nobody = &credential{}

type principalKey struct{}

func principalOf(ctx context.Context) *principal { return ctx.Value(principalKey{}).(*principal) }

// by is the metadata of what a call changes.
func by(ctx context.Context) commands.By {
	req, p := requestOf(ctx), principalOf(ctx)
	actor := events.Actor{Kind: events.UserActor, ID: p.claims.UserID}
	if p.machine != nil {
		actor = events.Actor{Kind: events.ClientActor, ID: p.machine.clientID}
	}
	return commands.By{
		Actor:         actor,
		RequestID:     req.id,
		CorrelationID: req.correlation,
		Reason:        req.reason,
		Once:          req.once,
		Pause:         req.pauseChange(),
	}
}

// bearer tells what the token of a request proves, or its ticket.
func (a *API) bearer(r *http.Request) (*credential, error) {
	if c, err := a.ticketOf(r); c != nil || err != nil {
		return c, err
	}
	scheme, token, _ := strings.Cut(r.Header.Get(authHeader), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, newProblem(http.StatusUnauthorized, "the request needs Authorization: Bearer with a token")
	}
	return a.authenticate(r.Context(), token)
}

// admit finds out who makes a request and whether they may. pathTenant is the tenant that the path names, empty where
// it names none.
func (a *API) admit(r *http.Request, need access, pathTenant string) (*principal, error) {
	p := &principal{credential: nobody}
	if need.who == anyone {
		return p, nil
	}
	req := requestOf(r.Context())
	if req.tokenRefusal != nil {
		return nil, req.tokenRefusal
	}
	p.credential = req.credential
	if err := a.checkRegistered(req, p, need); err != nil {
		return nil, err
	}
	if err := a.checkVerified(p, need); err != nil {
		return nil, err
	}
	sent := r.Header.Get(tenantHeader)
	if need.requireTenant && sent == "" {
		return nil, newProblem(http.StatusBadRequest, "the header X-Tenant-ID is required")
	}
	if pathTenant != "" && sent != "" && sent != pathTenant {
		return nil, newProblem(http.StatusBadRequest, "X-Tenant-ID names another tenant than the path")
	}
	named := cmp.Or(pathTenant, sent)
	id := named
	if id == "" && p.machine == nil && need.ofTenant() {
		var err error
		if id, err = a.canonicalTenant(req, p); err != nil {
			return nil, err
		}
	}
	if err := a.authorize(p, need, id); err != nil {
		return nil, err
	}
	if p.machine == nil && p.tenant != nil && named != "" {
		a.Directory.NoteUse(p.claims.UserID, p.tenant.ID(), p.tenant.JoinedAt(p.claims.UserID))
	}
	if need.environment && (!need.past || !isHistorical(r.URL)) {
		name := r.Header.Get(environmentHeader)
		if need.allEnvironments && name == "*" {
			return p, nil
		}
		if err := p.selectEnvironment(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkRegistered refuses a person who has not begun to use the service: nobody could deactivate or erase them. Calls
// about no tenant are let through for somebody who began on another node just now, which this node's snapshot may not
// show yet.
func (a *API) checkRegistered(ctx context.Context, p *principal, need access) error {
	if p.machine != nil || a.Live.Registered(p.claims.UserID) {
		return nil
	}
	if need.who == person {
		if _, err := a.Queries.PlatformUser(ctx, p.claims.UserID); !errors.Is(err, queries.ErrNotFound) {
			return err
		}
	}
	return newProblem(http.StatusForbidden,
		"the caller has not begun to use the service: call POST /api/v1/auth/login first")
}

// checkVerified refuses a person in production whose address is not verified what they may not do before: somebody else
// may have signed up with it.
func (a *API) checkVerified(p *principal, need access) error {
	if need.unverified || a.isVerified(p.credential) {
		return nil
	}
	return unverifiedRefused()
}

func unverifiedRefused() *problem {
	return newProblem(
		http.StatusForbidden,
		"the e-mail address is not verified: it needs verification by the mailed link, after which a new sign-in or "+
			"refresh counts; "+
			"POST "+verificationRoute+" has another link mailed",
	)
}

// isVerified reports whether a credential is no person's, or one's whose address is verified. Outside of production all
// addresses count as verified.
func (a *API) isVerified(c *credential) bool {
	return c.machine != nil || a.isVerifiedPerson(c.claims)
}

func (a *API) isVerifiedPerson(c commands.Claims) bool {
	return c.EmailVerified || a.Environment != "production"
}

// tenantsOf lists the tenants that a person may read, as TenantsOf does: without a verified address, those that they
// created alone.
func (a *API) tenantsOf(c commands.Claims) []string {
	tenants := a.Live.TenantsOf(c.UserID)
	if a.isVerifiedPerson(c) {
		return tenants
	}
	return slices.DeleteFunc(slices.Clone(tenants), func(id string) bool {
		tenant, ok := a.Live.Tenant(id)
		return !ok || tenant.Creator() != c.UserID
	})
}

// identify notes whose token a request bears, or why it does not hold. It refuses nothing.
func (a *API) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := requestOf(r.Context())
		req.received = r
		req.credential, req.tokenRefusal = a.bearer(r)
		next.ServeHTTP(w, r)
	})
}

// authenticate verifies a token, refuses one that has been revoked, and returns what it proves.
func (a *API) authenticate(ctx context.Context, token string) (*credential, error) {
	c, err := a.verifier.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := a.checkRevoked(c); err != nil {
		return nil, err
	}
	return c, nil
}

// checkRevoked tells whether what a token proves has been revoked.
func (a *API) checkRevoked(c *credential) error {
	if c.machine != nil {
		if client, ok := a.Live.Client(c.machine.clientID); !ok || client.TenantID != c.machine.tenantID {
			return newProblem(http.StatusUnauthorized, "the client of the token has been deleted")
		}
		return nil
	}
	return commands.CheckSession(a.Live, c.claims)
}

// stillAllowed reports whether a principal who was admitted to a tenant, and to an environment where the call is about
// one, would be admitted again.
func (a *API) stillAllowed(p *principal, need access) bool {
	if !a.Now().Before(p.expires) || a.checkRevoked(p.credential) != nil {
		return false
	}
	now := &principal{credential: p.credential}
	if a.authorize(now, need, p.tenant.ID()) != nil {
		return false
	}
	if !need.environment || need.allEnvironments && p.environment == (events.EnvironmentRef{}) {
		return true
	}
	return now.selectEnvironment(p.environment.Name) == nil && now.environment == p.environment
}

// authorizeOnPlatform refuses a person who lacks a role on the platform, or whose address is not verified: their role
// does not count.
func (a *API) authorizeOnPlatform(p *principal, need events.PlatformRole) error {
	if !p.claims.EmailVerified {
		return unverifiedRefused()
	}
	if !a.platformRole(p.claims).Includes(need) {
		return newProblem(http.StatusForbidden, "it needs the platform role "+string(need))
	}
	return nil
}

// authorize finds the tenant of a call, where it is about one.
func (a *API) authorize(p *principal, need access, id string) error {
	switch {
	case p.machine != nil:
		return a.authorizeMachine(p, need, id)
	case need.platform != "":
		return a.authorizeOnPlatform(p, need.platform)
	case !need.ofTenant():
		return nil
	default:
		return a.authorizePerson(p, need, id)
	}
}

// canonicalTenant finds the tenant of a person's call that names none. A tenant that another person added them to
// must be confirmed before.
func (a *API) canonicalTenant(ctx context.Context, p *principal) (string, error) {
	tenants := a.tenantsOf(p.claims)
	id, err := commands.CanonicalTenant(ctx, a.Live, a.Directory, p.claims.UserID, tenants)
	switch {
	case err != nil || id != "":
		return id, err
	case len(tenants) > 0:
		return "", newProblem(http.StatusForbidden, "the caller was added to tenants, and none is known to be confirmed: "+
			"name one by X-Tenant-ID, or call POST /api/v1/tenants/{tenantId}/membership/accept")
	case !a.isVerified(p.credential):
		return "", unverifiedRefused()
	default:
		return "", newProblem(http.StatusForbidden, "the caller is a member of no tenant")
	}
}

// authorizePerson finds the tenant of a person's call and their role in it. Whoever is no member is told the same of a
// tenant that exists and of one that does not.
func (a *API) authorizePerson(p *principal, need access, id string) error {
	tenant, ok := a.Live.Tenant(id)
	if ok {
		p.role, ok = tenant.Role(p.claims.UserID)
	}
	if !ok {
		return newProblem(http.StatusForbidden, "the caller is no member of the tenant")
	}
	if levelOfRole[p.role] < need.who {
		return roleRefused(p.role)
	}
	// joined in development, or before this was asked
	if tenant.Creator() != p.claims.UserID && !a.isVerified(p.credential) {
		return unverifiedRefused()
	}
	p.tenant = tenant
	return nil
}

func roleRefused(role events.Role) *problem {
	return newProblem(http.StatusForbidden, "the role "+string(role)+" does not allow it")
}

// authorizeMachine lets a machine into its own tenant, for what its token has the scope of.
func (a *API) authorizeMachine(p *principal, need access, id string) error {
	tenant, ok := a.Live.Tenant(p.machine.tenantID)
	switch {
	case !ok:
		return newProblem(http.StatusUnauthorized, "the tenant of the token has been deleted")
	case need.scope == "":
		return newProblem(http.StatusForbidden, "machine tokens do not allow it")
	case id != "" && id != p.machine.tenantID:
		return newProblem(http.StatusForbidden, "the token is for another tenant")
	case !slices.Contains(p.machine.scopes, need.scope):
		return scopeRefused(need.scope)
	}
	p.tenant = tenant
	return nil
}

func scopeRefused(scope events.Scope) *problem {
	problem := newProblem(http.StatusForbidden, "the token does not have the scope "+string(scope))
	problem.headers.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+string(scope)+`"`)
	return problem
}

// selectEnvironment finds the environment of a call; an empty name stands for production.
func (p *principal) selectEnvironment(name string) error {
	if name == "" {
		name = events.DefaultEnvironment
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
	TenantID string `header:"X-Tenant-ID" doc:"The tenant of the call; without it the caller's canonical tenant, unless the header is required"`
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
