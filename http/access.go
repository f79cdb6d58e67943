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

// access defines who may call an operation. The zero access allows no caller: the server does not start with one.
type access struct {
	// who is the lowest level that a person needs.
	who callerLevel
	// scope is the scope that a machine needs. Without one, no machine may call the operation.
	scope events.Scope
	// platform is the lowest platform role that a person needs; empty for none.
	platform events.PlatformRole
	// requireTenant requires the header X-Tenant-ID.
	requireTenant bool
	// environment says that the call concerns one environment, named by X-Environment.
	environment bool
	// allEnvironments also allows X-Environment: *, for all environments of the tenant. The principal then has none.
	allEnvironments bool
	// past says that the call may ask for historical state. Its environment may have been deleted since, so the operation
	// looks it up itself.
	past bool
	// unverified allows people with an unverified address: the call changes nothing, signs out, or sends a link by mail.
	unverified bool
	// endsAccess says that the call may remove the caller's own role, endsSession that it ends their session. A replay
	// with its Idempotency-Key is still answered.
	endsAccess, endsSession bool
	// pays says that the call leads to a higher plan. Like toggles, it is allowed past the daily write quota.
	pays bool
	// slow limits the concurrent calls of a tenant, or of a client network if it is public: the call may wait long for a
	// provider or for its queries.
	slow bool
}

// ofTenant reports whether the call concerns a tenant.
func (need access) ofTenant() bool { return need.platform == "" && need.who > person }

// callerLevel orders callers by their rights: each level includes the ones before it.
type callerLevel int

const (
	anyone callerLevel = iota + 1
	person             // signed in
	viewer             // this and the next are roles in the call's tenant
	developer
	admin
)

var levelOfRole = map[events.Role]callerLevel{
	events.ViewerRole:    viewer,
	events.DeveloperRole: developer,
	events.AdminRole:     admin,
}

// principal is the caller of an operation, with the tenant and environment of the call.
type principal struct {
	*credential
	tenant      *snapshot.Tenant // nil if the call concerns no tenant
	role        events.Role      // a person's role in the tenant
	environment events.EnvironmentRef
}

// tenantID returns the id of the call's tenant, or "" if it concerns none.
func (p *principal) tenantID() string {
	if p.tenant == nil {
		return ""
	}
	return p.tenant.ID()
}

// credential identifies the person or the machine that a token belongs to.
type credential struct {
	claims  commands.Claims // of a person
	machine *machine        // nil for a person
	expires time.Time

	stream atomic.Pointer[streamURL] // the last one issued for it
}

// machine is an OAuth client with a token for some of its scopes.
type machine struct {
	clientID string
	tenantID string
	scopes   []events.Scope
}

// noCredential is the credential of a caller without a token.
var noCredential = &credential{}

type principalKey struct{}

func principalOf(ctx context.Context) *principal { return ctx.Value(principalKey{}).(*principal) }

// callMetadata returns the metadata of the call's events.
func callMetadata(ctx context.Context) commands.By {
	req, p := requestOf(ctx), principalOf(ctx)
	actor := events.Actor{Kind: events.UserActor, ID: p.claims.UserID}
	if p.machine != nil {
		actor = events.Actor{Kind: events.ClientActor, ID: p.machine.clientID}
	}
	by := commands.By{
		Actor:         actor,
		RequestID:     req.id,
		CorrelationID: req.correlation,
		Reason:        req.reason,
		Once:          req.once,
		Pause:         req.pauseChange(),
	}
	if p.tenant != nil && req.reason == "" {
		by.ReasonRequired = p.tenant.FlagRules().RequireReason
	}
	return by
}

// bearer verifies the token or the ticket of a request.
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

// admit identifies and authorizes the caller of a request. pathTenant is the tenant in the path, or "".
func (a *API) admit(r *http.Request, need access, pathTenant string) (*principal, error) {
	p := &principal{credential: noCredential}
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
		a.Directory.NoteVisit(p.claims.UserID, p.tenant.ID(), p.tenant.JoinedAt(p.claims.UserID))
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

// checkRegistered refuses a person without a record here: an operator could not deactivate or erase them. For calls
// without a tenant it also asks the database: the person may have just registered on another node.
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
		"the caller is not registered with the service: call POST /api/v1/auth/login first")
}

// checkVerified refuses people with an unverified address in production: the address may belong to another person.
func (a *API) checkVerified(p *principal, need access) error {
	if need.unverified || a.isVerified(p.credential) {
		return nil
	}
	return unverifiedRefused()
}

func unverifiedRefused() *problem {
	return newProblem(
		http.StatusForbidden,
		"the e-mail address is not verified: open the mailed link, then sign in again or refresh the token; "+
			"POST "+verificationRoute+" sends another link",
	)
}

// isVerified reports whether a credential belongs to a machine or to a person with a verified address. Outside of
// production all addresses count as verified.
func (a *API) isVerified(c *credential) bool {
	return c.machine != nil || a.isVerifiedPerson(c.claims)
}

func (a *API) isVerifiedPerson(c commands.Claims) bool {
	return c.EmailVerified || a.Environment != "production"
}

// tenantsOf lists the tenants that a person may read: without a verified address, only the ones they created.
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

// identify stores the credential of a request, or why its token is invalid. It refuses no request.
func (a *API) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := requestOf(r.Context())
		req.received = r
		req.credential, req.tokenRefusal = a.bearer(r)
		next.ServeHTTP(w, r)
	})
}

// authenticate verifies a token, refuses a revoked one, and returns its credential.
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

// checkRevoked returns a problem if the client or session of a credential was revoked.
func (a *API) checkRevoked(c *credential) error {
	if c.machine != nil {
		if client, ok := a.Live.Client(c.machine.clientID); !ok || client.TenantID != c.machine.tenantID {
			return newProblem(http.StatusUnauthorized, "the client of the token has been deleted")
		}
		return nil
	}
	return commands.CheckSession(a.Live, c.claims)
}

// stillAllowed reports whether an admitted principal would be admitted again to the same tenant and environment.
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

// authorizeOnPlatform refuses a person who lacks a platform role, or whose address is not verified.
func (a *API) authorizeOnPlatform(p *principal, need events.PlatformRole) error {
	if !p.claims.EmailVerified {
		return unverifiedRefused()
	}
	if !a.platformRole(p.claims).Includes(need) {
		return newProblem(http.StatusForbidden, "the call needs the platform role "+string(need))
	}
	return nil
}

// authorize checks the caller's rights and sets the principal's tenant if the call concerns one.
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

// canonicalTenant chooses the tenant if a person's call names none. It skips tenants that another person added them to
// until they confirm.
func (a *API) canonicalTenant(ctx context.Context, p *principal) (string, error) {
	tenants := a.tenantsOf(p.claims)
	id, err := commands.CanonicalTenant(ctx, a.Live, a.Directory, p.claims.UserID, tenants)
	switch {
	case err != nil || id != "":
		return id, err
	case len(tenants) > 0:
		return "", newProblem(http.StatusForbidden, "the caller was added to tenants but has confirmed none: "+
			"send X-Tenant-ID, or call POST /api/v1/tenants/{tenantId}/membership/accept")
	case !a.isVerified(p.credential):
		return "", unverifiedRefused()
	default:
		return "", newProblem(http.StatusForbidden, "the caller is a member of no tenant")
	}
}

// authorizePerson sets the tenant of a person's call and their role in it. A caller who is not a member gets the same
// answer whether the tenant exists or not.
func (a *API) authorizePerson(p *principal, need access, id string) error {
	tenant, ok := a.Live.Tenant(id)
	if ok {
		p.role, ok = tenant.Role(p.claims.UserID)
	}
	if !ok {
		return newProblem(http.StatusForbidden, "the caller is not a member of the tenant")
	}
	if levelOfRole[p.role] < need.who {
		return roleRefused(p.role)
	}
	// joined in development, or before verification was required
	if tenant.Creator() != p.claims.UserID && !a.isVerified(p.credential) {
		return unverifiedRefused()
	}
	p.tenant = tenant
	return nil
}

func roleRefused(role events.Role) *problem {
	return newProblem(http.StatusForbidden, "the role "+string(role)+" does not allow it")
}

// authorizeMachine admits a machine to its own tenant if its token has the needed scope.
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

// selectEnvironment sets the environment of a call; an empty name means production.
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

// TenantInput documents the header that chooses the tenant of a call. admit reads it before an operation runs.
type TenantInput struct {
	TenantID string `header:"X-Tenant-ID" doc:"The tenant of the call; without it the caller's canonical tenant, unless the header is required"`
}

// EnvironmentInput documents the headers that choose the tenant and the environment of a call.
type EnvironmentInput struct {
	TenantInput
	Environment string `header:"X-Environment" doc:"The environment of the call; the default is production"`
}

// ChangeInput documents the header that every change accepts.
type ChangeInput struct {
	Reason string `header:"X-Change-Reason" maxLength:"500" doc:"The reason of the change, shown in the history"`
}
