package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// Access defines who may call an operation. The zero access allows no caller: the server does not start with one.
type Access struct {
	// Who is the lowest level that a person needs.
	Who callerLevel
	// Scope is the scope that a machine needs. Without one, no machine may call the operation.
	Scope events.Scope
	// platform is the lowest platform role that a person needs; empty for none.
	platform events.PlatformRole
	// RequireTenant requires the header X-Tenant-ID.
	RequireTenant bool
	// environment says that the call concerns one environment, named by X-Environment.
	environment bool
	// allEnvironments also allows X-Environment: *, for all environments of the tenant. The principal then has none.
	allEnvironments bool
	// past says that the call may ask for historical state. Its environment may have been deleted since, so the operation
	// looks it up itself.
	past bool
	// Unverified allows people with an unverified address: the call changes nothing, signs out, or sends a link by mail.
	Unverified bool
	// EndsAccess says that the call may remove the caller's own role, EndsSession that it ends their session. A replay
	// with its Idempotency-Key is still answered.
	EndsAccess, EndsSession bool
	// UpgradesPlan says that the call leads to a higher plan. Like toggles, it is allowed past the daily write quota.
	UpgradesPlan bool
	// BrowserKeys allows evaluation keys of browsers, which are public.
	BrowserKeys bool
	// Slow limits the concurrent calls of a tenant, or of a client network if it is public: the call may wait long for a
	// provider or for its queries.
	Slow bool
	// FromCSV turns a body of text/csv into one of JSON; nil refuses CSV. Its error says what is wrong with the body.
	FromCSV func(query url.Values, text []byte) ([]byte, error)
	// MaxBody limits the body in bytes; 0 for 1 MiB.
	MaxBody int
}

// ofTenant reports whether the call concerns a tenant.
func (need Access) ofTenant() bool { return need.platform == "" && need.Who > Person }

// callerLevel orders callers by their rights: each level includes the ones before it.
type callerLevel int

// The levels of callers.
const (
	Anyone callerLevel = iota + 1
	Person             // signed in
	Viewer             // this and the next are roles in the call's tenant
	Developer
	Admin
)

var levelOfRole = map[events.Role]callerLevel{
	events.ViewerRole:    Viewer,
	events.DeveloperRole: Developer,
	events.AdminRole:     Admin,
}

// Principal is the caller of an operation, with the tenant and environment of the call.
type Principal struct {
	*Credential
	Tenant      *snapshot.Tenant // nil if the call concerns no tenant
	Role        events.Role      // a person's role in the tenant
	Environment state.Environment
}

// TenantID returns the id of the call's tenant, or "" if it concerns none.
func (p *Principal) tenantID() string {
	if p.Tenant == nil {
		return ""
	}
	return p.Tenant.ID()
}

// Credential identifies the person or the machine that a token belongs to.
type Credential struct {
	Claims  people.Claims // of a person
	Machine *Machine      // nil for a person
	Expires time.Time

	stream atomic.Pointer[streamURL] // the last one issued for it
}

// Machine is an OAuth client with a token for some of its scopes, or a caller with an evaluation key.
type Machine struct {
	ClientID string // or the evaluation key's id
	TenantID string
	scopes   []events.Scope
	key      *snapshot.EvaluationKey // nil for an OAuth client
	keyHash  [sha256.Size]byte       // of the key as sent: before a rotation it is a different one
}

// EvaluationKey returns the evaluation key of a credential, nil if it is none.
func (c *Credential) EvaluationKey() *snapshot.EvaluationKey {
	if c.Machine == nil {
		return nil
	}
	return c.Machine.key
}

// HasBrowserKey reports whether the caller uses a browser key, which is public.
func (c *Credential) HasBrowserKey() bool {
	key := c.EvaluationKey()
	return key != nil && key.Kind == events.BrowserKey
}

// NoCredential is the credential of a caller without a token.
var NoCredential = &Credential{}

type principalKey struct{}

// PrincipalOf returns the caller of an operation.
func PrincipalOf(ctx context.Context) *Principal { return ctx.Value(principalKey{}).(*Principal) }

// CallMetadata returns the metadata of the call's events.
func CallMetadata(ctx context.Context) writer.By {
	req, p := RequestOf(ctx), PrincipalOf(ctx)
	actor := events.Actor{Kind: events.UserActor, ID: p.Claims.UserID}
	if p.Machine != nil {
		actor = events.Actor{Kind: events.ClientActor, ID: p.Machine.ClientID}
	}
	by := writer.By{
		Actor:         actor,
		RequestID:     req.ID,
		CorrelationID: req.Correlation,
		Reason:        req.reason,
		Once:          req.Once,
		Pause:         req.pauseChange(),
	}
	if p.Tenant != nil && req.reason == "" {
		by.ReasonRequired = p.Tenant.FlagRules().RequireReason
	}
	return by
}

// Open has callers without credentials use the key that keyOf returns. Its error refuses the call.
func (a *Core) Open(keyOf func(*http.Request) (string, error)) { a.open = keyOf }

// NeedsNoCredentials reports whether callers need no credentials, see Open.
func (a *Core) NeedsNoCredentials() bool { return a.open != nil }

// HasCredentials reports whether a request has a token or an evaluation key.
func HasCredentials(r *http.Request) bool { return credentialCount(r) > 0 }

// credentialCount counts the tokens and keys of a request. An empty one counts too.
func credentialCount(r *http.Request) int {
	return len(r.Header[apiKeyHeader]) + len(r.Header[authHeader])
}

// bearer verifies the token or the ticket of a request.
func (a *Core) bearer(r *http.Request) (*Credential, error) {
	if credentialCount(r) > 1 {
		return nil, NewProblem(http.StatusUnauthorized, "the request has several credentials: send one Authorization or one "+
			"X-API-Key")
	}
	if c, err := a.ticketOf(r); c != nil || err != nil {
		return c, err
	}
	if a.open != nil && !HasCredentials(r) {
		key, err := a.open(r)
		if err != nil {
			return nil, err
		}
		return a.authenticateKey(key)
	}
	if key := r.Header.Get(apiKeyHeader); key != "" {
		return a.authenticateKey(key)
	}
	scheme, token, _ := strings.Cut(r.Header.Get(authHeader), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, NewProblem(http.StatusUnauthorized, "the request needs Authorization: Bearer with a token")
	}
	return a.Authenticate(r.Context(), token)
}

// Admit identifies and authorizes the caller of a request. pathTenant is the tenant in the path, or "".
func (a *Core) Admit(r *http.Request, need Access, pathTenant string) (*Principal, error) {
	p := &Principal{Credential: NoCredential}
	if need.Who == Anyone {
		return p, nil
	}
	req := RequestOf(r.Context())
	if req.tokenRefusal != nil {
		return nil, req.tokenRefusal
	}
	p.Credential = req.credential
	if err := a.checkRegistered(req, p, need); err != nil {
		return nil, err
	}
	if err := a.checkVerified(p, need); err != nil {
		return nil, err
	}
	sent := r.Header.Get(tenantHeader)
	if need.RequireTenant && sent == "" && p.EvaluationKey() == nil {
		return nil, NewProblem(http.StatusBadRequest, "the header X-Tenant-ID is required")
	}
	if pathTenant != "" && sent != "" && sent != pathTenant {
		return nil, NewProblem(http.StatusBadRequest, "X-Tenant-ID names another tenant than the path")
	}
	named := cmp.Or(pathTenant, sent)
	id := named
	if id == "" && p.Machine == nil && need.ofTenant() {
		var err error
		if id, err = a.canonicalTenant(req, p); err != nil {
			return nil, err
		}
	}
	if err := a.Authorize(p, need, id); err != nil {
		return nil, err
	}
	if key, sent := p.EvaluationKey(), r.Header.Get(EnvironmentHeader); key != nil && sent != "" {
		if err := p.SelectEnvironment(sent); err != nil {
			return nil, err
		}
	}
	if p.Machine == nil && p.Tenant != nil && named != "" {
		a.Directory.NoteVisit(p.Claims.UserID, p.Tenant.ID(), p.Tenant.JoinedAt(p.Claims.UserID))
	}
	if need.environment && (!need.past || !isHistorical(r.URL)) {
		name := r.Header.Get(EnvironmentHeader)
		if need.allEnvironments && name == "*" {
			return p, nil
		}
		if err := p.SelectEnvironment(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkRegistered refuses a person without a record here: an operator could not deactivate or erase them. For calls
// without a tenant it also asks the database: the person may have just registered on another node.
func (a *Core) checkRegistered(ctx context.Context, p *Principal, need Access) error {
	if p.Machine != nil || a.Live.Registered(p.Claims.UserID) {
		return nil
	}
	if need.Who == Person {
		if _, err := a.Queries.PlatformUser(ctx, p.Claims.UserID); !errors.Is(err, queries.ErrNotFound) {
			return err
		}
	}
	return NewProblem(http.StatusForbidden,
		"the caller is not registered with the service: call POST /api/v1/auth/login first")
}

// checkVerified refuses people with an unverified address in production: the address may belong to another person.
func (a *Core) checkVerified(p *Principal, need Access) error {
	if need.Unverified || a.isVerified(p.Credential) {
		return nil
	}
	return unverifiedRefused()
}

func unverifiedRefused() *Problem {
	return NewProblem(
		http.StatusForbidden,
		"the e-mail address is not verified: open the mailed link, then sign in again or refresh the token; "+
			"POST "+VerificationRoute+" sends another link",
	)
}

// isVerified reports whether a credential belongs to a machine or to a person with a verified address. Outside of
// production all addresses count as verified.
func (a *Core) isVerified(c *Credential) bool {
	return c.Machine != nil || a.IsVerifiedPerson(c.Claims)
}

// IsVerifiedPerson reports whether a person has verified their address. Outside of production it need not be.
func (a *Core) IsVerifiedPerson(c people.Claims) bool {
	return c.EmailVerified || a.Environment != "production"
}

// TenantsOf lists the tenants that a person may read: without a verified address, only the ones they created.
func (a *Core) TenantsOf(c people.Claims) []string {
	tenants := a.Live.TenantsOf(c.UserID)
	if a.IsVerifiedPerson(c) {
		return tenants
	}
	return slices.DeleteFunc(slices.Clone(tenants), func(id string) bool {
		tenant, ok := a.Live.Tenant(id)
		return !ok || tenant.Creator() != c.UserID
	})
}

// identify stores the credential of a request, or the error of its token. For a browser key it also checks the origin
// of the page. It refuses no request.
func (a *Core) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := RequestOf(r.Context())
		req.received = r
		req.credential, req.tokenRefusal = a.bearer(r)
		if req.tokenRefusal == nil && req.credential.HasBrowserKey() {
			req.tokenRefusal = checkOrigin(w.Header(), r, req.credential.EvaluationKey())
		}
		if takesBrowserKeys(routedPath(r)) {
			showInvalid(w.Header(), req.tokenRefusal)
		}
		next.ServeHTTP(w, r)
	})
}

// Authenticate verifies a token or an evaluation key, refuses a revoked one, and returns its credential.
func (a *Core) Authenticate(ctx context.Context, token string) (*Credential, error) {
	if commands.IsEvaluationKey(token) {
		return a.authenticateKey(token)
	}
	if a.Identity == nil {
		return nil, NewProblem(http.StatusUnauthorized, "an edge takes evaluation keys alone")
	}
	c, err := a.Verifier.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := a.checkRevoked(c); err != nil {
		return nil, err
	}
	return c, nil
}

// checkRevoked returns a problem if the client or session of a credential was revoked.
func (a *Core) checkRevoked(c *Credential) error {
	if key := c.EvaluationKey(); key != nil {
		live, ok := a.Live.EvaluationKey(c.Machine.keyHash)
		if !ok || live.KeyID != key.KeyID || !a.Now().Before(endOf(live, c.Machine.keyHash)) ||
			!slices.Equal(live.Origins, key.Origins) {
			return unknownKey()
		}
		return nil
	}
	if c.Machine != nil {
		if client, ok := a.Live.Client(c.Machine.ClientID); !ok || client.TenantID != c.Machine.TenantID {
			return NewProblem(http.StatusUnauthorized, "the client of the token has been deleted")
		}
		return nil
	}
	return people.CheckSession(a.Live, c.Claims)
}

// StillAllowed reports whether an admitted principal would be admitted again to the same tenant and environment.
func (a *Core) StillAllowed(p *Principal, need Access) bool {
	if !a.Now().Before(p.Expires) || a.checkRevoked(p.Credential) != nil {
		return false
	}
	now := &Principal{Credential: p.Credential}
	if a.Authorize(now, need, p.Tenant.ID()) != nil {
		return false
	}
	if !need.environment || need.allEnvironments && p.Environment.ID == "" {
		return true
	}
	return now.SelectEnvironment(p.Environment.Name) == nil && now.Environment.ID == p.Environment.ID
}

// AccessEnd returns when a credential expires. An evaluation key may have got a nearer end since it was sent.
func (a *Core) AccessEnd(c *Credential) time.Time {
	end := c.Expires
	if c.EvaluationKey() != nil {
		if live, ok := a.Live.EvaluationKey(c.Machine.keyHash); ok && endOf(live, c.Machine.keyHash).Before(end) {
			end = endOf(live, c.Machine.keyHash)
		}
	}
	return end
}

// AuthorizeOnPlatform refuses a person who lacks a platform role, or whose address is not verified.
func (a *Core) AuthorizeOnPlatform(p *Principal, need events.PlatformRole) error {
	if !p.Claims.EmailVerified {
		return unverifiedRefused()
	}
	if !a.PlatformRole(p.Claims).Includes(need) {
		return NewProblem(http.StatusForbidden, "the call needs the platform role "+string(need))
	}
	return nil
}

// Authorize checks the caller's rights and sets the principal's tenant if the call concerns one.
func (a *Core) Authorize(p *Principal, need Access, id string) error {
	switch {
	case p.Machine != nil:
		return a.authorizeMachine(p, need, id)
	case need.platform != "":
		return a.AuthorizeOnPlatform(p, need.platform)
	case !need.ofTenant():
		return nil
	default:
		return a.authorizePerson(p, need, id)
	}
}

// canonicalTenant chooses the tenant if a person's call names none. It skips tenants that another person added them to
// until they confirm.
func (a *Core) canonicalTenant(ctx context.Context, p *Principal) (string, error) {
	tenants := a.TenantsOf(p.Claims)
	id, err := people.CanonicalTenant(ctx, a.Live, a.Directory, p.Claims.UserID, tenants)
	switch {
	case err != nil || id != "":
		return id, err
	case len(tenants) > 0:
		return "", NewProblem(http.StatusForbidden, "the caller was added to tenants but has confirmed none: "+
			"send X-Tenant-ID, or call POST /api/v1/tenants/{tenantId}/membership/accept")
	case !a.isVerified(p.Credential):
		return "", unverifiedRefused()
	default:
		return "", NewProblem(http.StatusForbidden, "the caller is a member of no tenant")
	}
}

// authorizePerson sets the tenant of a person's call and their role in it. A caller who is not a member gets the same
// answer whether the tenant exists or not.
func (a *Core) authorizePerson(p *Principal, need Access, id string) error {
	tenant, ok := a.Live.Tenant(id)
	if ok {
		p.Role, ok = tenant.Role(p.Claims.UserID)
	}
	if !ok {
		return NewProblem(http.StatusForbidden, "the caller is not a member of the tenant")
	}
	if levelOfRole[p.Role] < need.Who {
		return RoleRefused(p.Role)
	}
	// joined in development, or before verification was required
	if tenant.Creator() != p.Claims.UserID && !a.isVerified(p.Credential) {
		return unverifiedRefused()
	}
	p.Tenant = tenant
	return nil
}

// RoleRefused returns the 403 of a member whose role does not suffice.
func RoleRefused(role events.Role) *Problem {
	return NewProblem(http.StatusForbidden, "the role "+string(role)+" does not allow it")
}

// authorizeMachine admits a machine to its own tenant if its token has the needed scope.
func (a *Core) authorizeMachine(p *Principal, need Access, id string) error {
	tenant, ok := a.tenantOfMachine(p.Machine)
	switch {
	case !ok:
		return NewProblem(http.StatusUnauthorized, "the tenant of the token has been deleted")
	case p.EvaluationKey() != nil && !slices.Contains(keyScopes, need.Scope), p.HasBrowserKey() && !need.BrowserKeys:
		return NewProblem(http.StatusForbidden, "the evaluation key may not make this call")
	case need.Scope == "":
		return NewProblem(http.StatusForbidden, "machine tokens do not allow it")
	case id != "" && id != p.Machine.TenantID:
		return NewProblem(http.StatusForbidden, "the token or the key is for another tenant")
	case !slices.Contains(p.Machine.scopes, need.Scope):
		return scopeRefused(need.Scope)
	}
	p.Tenant = tenant
	return nil
}

// tenantOfMachine returns the tenant of a token or an evaluation key, and false once that is deleted.
func (a *Core) tenantOfMachine(m *Machine) (*snapshot.Tenant, bool) {
	if m.key != nil {
		return m.key.Tenant()
	}
	return a.Live.Tenant(m.TenantID)
}

func scopeRefused(scope events.Scope) *Problem {
	problem := NewProblem(http.StatusForbidden, "the token does not have the scope "+string(scope))
	problem.headers.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+string(scope)+`"`)
	return problem
}

// SelectEnvironment sets the environment of a call; an empty name means production, or an evaluation key's environment.
func (p *Principal) SelectEnvironment(name string) error {
	if key := p.EvaluationKey(); key != nil {
		if name != "" && name != key.Environment.Name {
			return NewProblem(http.StatusForbidden, "the evaluation key is for the environment "+key.Environment.Name)
		}
		name = key.Environment.Name
	}
	if name == "" {
		name = events.DefaultEnvironment
	}
	environment, ok := p.Tenant.Environment(name)
	if !ok {
		return NewProblem(http.StatusNotFound, "the tenant has no such environment")
	}
	if key := p.EvaluationKey(); key != nil && environment.ID != key.Environment.ID { // made anew meanwhile
		return unknownKey()
	}
	p.Environment = environment
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

// Sees reports whether the caller may know of a flag: browsers only see flags that are marked for them.
func (p *Principal) Sees(flag *snapshot.Flag) bool {
	return !p.HasBrowserKey() || flag.State().ClientSide
}

// ClientID returns the id of a machine client or an evaluation key, and is empty for people.
func (p *Principal) ClientID() string {
	if p.Machine == nil {
		return ""
	}
	return p.Machine.ClientID
}

// RequireFlagsRead refuses a machine whose token lacks the scope flags:read.
func (p *Principal) RequireFlagsRead() error {
	if p.Machine == nil || slices.Contains(p.Machine.scopes, events.FlagsRead) {
		return nil
	}
	return scopeRefused(events.FlagsRead)
}

// ReadFlags is the access of those who read flags in an environment.
var ReadFlags = Access{Who: Viewer, Scope: events.FlagsRead, environment: true}

// ReadFlagsAt is ReadFlags, of now or of an earlier time.
var ReadFlagsAt = Access{Who: Viewer, Scope: events.FlagsRead, environment: true, past: true}

// ChangeFlags is the access of those who change flags in an environment.
var ChangeFlags = Access{Who: Developer, Scope: events.FlagsWrite, environment: true}

// PlatformAccess returns the access of people who have a platform role or a higher one.
func PlatformAccess(role events.PlatformRole) Access { return Access{Who: Person, platform: role} }

// RoleAccess lets super users change roles, including their own.
var RoleAccess = Access{Who: Person, platform: events.SuperUser, EndsAccess: true}

// PlatformRole returns a person's platform role, or "" if the address is not verified. A super user also needs an
// address on the configured list.
func (a *Core) PlatformRole(c people.Claims) events.PlatformRole {
	role := a.Live.PlatformRole(c.UserID)
	if !c.EmailVerified || role == events.SuperUser && !a.SuperUsers.Has(c.Email) {
		return ""
	}
	return role
}
