package accounts

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
)

type bootstrapBody struct {
	Success bool          `json:"success" example:"true"`
	Message string        `json:"message" example:"signed in"`
	Data    bootstrapData `json:"data"`
}

type bootstrapData struct {
	User struct {
		UID      string `json:"uid" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
		Email    string `json:"email" example:"ada@example.com"`
		TenantID string `json:"tenant_id" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
		Role     string `json:"role" example:"admin"`
	} `json:"user"`
	Subscription struct {
		Plan         rest.PlanName        `json:"plan" example:"free"`
		Status       string               `json:"status" example:"active"`
		BillingCycle *events.BillingCycle `json:"billingCycle" nullable:"true" enum:"monthly,yearly" doc:"null if nothing is paid" example:"monthly"`
	} `json:"subscription" doc:"The active tenant's; without one, the plan free with the status none"`
	Tenants           []ownMembershipBody    `json:"tenants"`
	Invitations       []tenantInvitationBody `json:"invitations" doc:"To tenants that the person left or declined before, or tenants that require consent: accept with POST /api/v1/tenants/{tenantId}/membership/accept"`
	ActiveTenantID    string                 `json:"active_tenant_id" doc:"The tenant that the person used last; empty for a person who has opened none and created none" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
	ActiveTenantRole  string                 `json:"active_tenant_role" example:"admin"`
	CanonicalTenantID string                 `json:"canonical_tenant_id" doc:"The first tenant that the person created and was not added back to, or else the first that they confirmed by opening or accepting it. Empty without one" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
	CanonicalRole     string                 `json:"canonical_role" example:"admin"`
}

// MembershipBody is a person's membership in a tenant, as shown in the platform's lists.
type MembershipBody struct {
	TenantID   string `json:"tenant_id" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
	TenantName string `json:"tenant_name" example:"Acme"`
	Role       string `json:"role" example:"admin"`
}

// ownMembershipBody is the caller's own membership in a tenant.
type ownMembershipBody struct {
	TenantID   string `json:"tenant_id" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
	TenantName string `json:"tenant_name" example:"Acme"`
	Role       string `json:"role" example:"admin"`
	// AddedBy is an extension.
	AddedBy *string `json:"added_by" nullable:"true" doc:"The name or else the address of the person who added the caller, until the caller opens the tenant or accepts; null otherwise" example:"Ada Lovelace"`
}

// tenantInvitationBody is an invitation to a tenant that a person must accept.
type tenantInvitationBody struct {
	TenantID   string `json:"tenant_id" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
	TenantName string `json:"tenant_name" example:"Northwind"`
	Role       string `json:"role" example:"developer"`
	InvitedBy  string `json:"invited_by" doc:"The inviter's name, or else their address" example:"Ada Lovelace"`
}

type signUpBody struct {
	IDToken     string `json:"idToken,omitempty" doc:"For a person who signed up with the identity provider; otherwise send email and password" example:"eyJhbGciOiJSUzI1NiIsImtpZCI6Ij..."`
	Email       string `json:"email,omitempty" format:"email" maxLength:"254" example:"ada@example.com"`
	Password    string `json:"password,omitempty" example:"correct horse battery"`
	DisplayName string `json:"displayName,omitempty" maxLength:"200" example:"Ada Lovelace"`
}

type bootstrapOutput struct {
	Body bootstrapBody
}

// sessionBody is the response of the legacy sign-in.
type sessionBody struct {
	Token        string `json:"token" example:"eyJhbGciOiJSUzI1NiIsImtpZCI6IjE3In0..."`
	RefreshToken string `json:"refreshToken" example:"kxh0HFw7zLd4..."`
	ExpiresIn    int    `json:"expiresIn" doc:"Seconds" example:"3600"`
	User         struct {
		ID          string `json:"id" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
		Email       string `json:"email" example:"ada@example.com"`
		DisplayName string `json:"displayName" example:"Ada"`
		Role        string `json:"role" doc:"The role in the active tenant" example:"admin"`
	} `json:"user"`
}

// SessionOutput is the response to a sign-in.
type SessionOutput struct{ Body sessionBody }

func (a *API) addAuth() {
	signUp := rest.Operation("POST", "/api/v1/auth/signup", "sign-up", "Authentication", "Sign up")
	signUp.DefaultStatus = http.StatusCreated
	signUp.Errors = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict}
	signUp.Description = "After a status of 500 or more the account may exist: retry the same call, or sign in."
	example := map[string]string{
		"email":       "ada@example.com",
		"password":    "correct horse battery",
		"displayName": "Ada Lovelace",
	}
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Anyone},
		rest.WithExamples(signUp, example, nil),
		func(ctx context.Context, in *struct{ Body signUpBody }) (*bootstrapOutput, error) {
			claims, err := a.signUp(ctx, in.Body)
			if err != nil {
				return nil, err
			}
			return a.bootstrap(ctx, claims, "signed up")
		},
	)
	login := rest.Operation("POST", "/api/v1/auth/login", "log-in", "Authentication",
		"Register with or return to the service with an ID token")
	login.Errors = []int{http.StatusUnauthorized, http.StatusForbidden}
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Anyone},
		login,
		func(ctx context.Context, in *struct{ Body IDTokenBody }) (*bootstrapOutput, error) {
			claims, err := a.claimsOf(ctx, in.Body.IDToken)
			if err != nil {
				return nil, err
			}
			return a.bootstrap(ctx, claims, "signed in")
		},
	)
	a.addProviders()
	a.addPasswords()
	logout := rest.Operation("POST", "/api/v1/auth/logout", "log-out", "Authentication", "End the session")
	logout.Description = "The call's token and the session's refresh tokens stop working, on every node. With Firebase, " +
		"the refresh tokens of all the person's sessions end."
	rest.Register(a.Core, rest.Access{Who: rest.Person, EndsSession: true, Unverified: true, Slow: true}, logout, a.logOut)
	refresh := rest.Operation("POST", "/api/v1/auth/refresh", "refresh", "Authentication",
		"Trade a refresh token for new tokens")
	refresh.Description = "A refresh token is valid for one use. Using it twice ends its session on every node, ID " +
		"tokens included. A call that is refused or fails for another reason does not use it up. With Firebase a token is " +
		"valid until its session ends."
	refresh.Errors = []int{http.StatusUnauthorized, http.StatusForbidden}
	rest.Register(a.Core, rest.Access{Who: rest.Anyone, Slow: true}, refresh, func(ctx context.Context, in *struct {
		Body struct {
			RefreshToken string `json:"refreshToken" minLength:"1" example:"kxh0HFw7zLd4..."`
		}
	}) (*SessionOutput, error) {
		if in.Body.RefreshToken == "" {
			return nil, rest.Invalid(map[string]string{"refreshToken": "is required"})
		}
		if err := rest.BodyErrors(ctx); err != nil {
			return nil, err
		}
		return a.refresh(ctx, in.Body.RefreshToken)
	})
}

func (a *API) refresh(ctx context.Context, refreshToken string) (*SessionOutput, error) {
	session, active, err := a.SignIn.Refresh(ctx, rest.RequestBy(ctx), refreshToken)
	if err != nil {
		return nil, err
	}
	return a.showSession(session, active), nil
}

// CreateAccount creates an account; the caller appends the facts afterwards. If that fails, a retry with the same
// password adopts the account without another mail. Other callers get Conflict.
func (a *API) CreateAccount(
	ctx context.Context, email, password, displayName string,
) (session people.Session, err error) {
	tried := false // false if the client's network exceeded its mail limit
	err = a.LimitMails(ctx, func() (err error) {
		tried = true
		session, err = a.Identity.SignUp(ctx, email, password, displayName)
		return err
	})
	if tried && commands.KindOf(err) != commands.Conflict {
		return session, err
	}
	wrong := a.LimitAttempts(ctx, rest.PersonAttemptKey(email), func() (err error) {
		session, err = a.Identity.SignIn(ctx, email, password)
		return err
	})
	switch {
	case wrong == nil && a.SignIn.CheckNew(session.Claims) == nil:
		return session, nil
	case commands.KindOf(wrong) == commands.Unavailable:
		return people.Session{}, wrong
	default:
		return people.Session{}, err
	}
}

// signUp creates an account, or adopts one of the identity provider that is new to the service.
func (a *API) signUp(ctx context.Context, in signUpBody) (people.Claims, error) {
	if in.IDToken == "" {
		if err := rest.AddBodyErrors(ctx, people.CheckSignUp(in.Email, in.Password, in.DisplayName)); err != nil {
			return people.Claims{}, err
		}
		session, err := a.CreateAccount(ctx, in.Email, in.Password, in.DisplayName)
		return session.Claims, err
	}
	claims, err := a.claimsOf(ctx, in.IDToken)
	if err == nil {
		err = a.SignIn.CheckNew(claims)
	}
	return claims, err
}

// IDTokenBody is the body of a person who has signed in with the identity provider.
type IDTokenBody struct {
	IDToken string `json:"idToken" minLength:"1" doc:"An ID token of the identity provider" example:"eyJhbGciOiJSUzI1NiIsImtpZCI6Ij..."`
}

// claimsOf verifies an ID token, and asks the identity provider whether its session has ended.
func (a *API) claimsOf(ctx context.Context, idToken string) (people.Claims, error) {
	if idToken == "" {
		return people.Claims{}, rest.Invalid(map[string]string{"idToken": "is required"})
	}
	if err := rest.BodyErrors(ctx); err != nil {
		return people.Claims{}, err
	}
	c, err := a.Authenticate(ctx, idToken)
	if err != nil {
		return people.Claims{}, err
	}
	if c.Machine != nil {
		return people.Claims{}, rest.NewProblem(http.StatusUnauthorized, "the token is not an ID token")
	}
	return a.Identity.Admit(ctx, idToken)
}

// letIn signs in a person whom the identity provider has verified, one at a time per client network: its queries are
// expensive.
func (a *API) letIn(ctx context.Context, c people.Claims) (activeTenant string, err error) {
	slot, err := a.EnterQueue(ctx, a.Queues.Database, rest.PrincipalOf(ctx))
	if err != nil {
		return "", err
	}
	defer slot.Leave()
	return a.SignIn.LetIn(ctx, rest.RequestBy(ctx), c)
}

func (a *API) roleIn(tenantID, userID string) string {
	return string(a.Live.RoleIn(tenantID, userID))
}

func (a *API) bootstrap(ctx context.Context, c people.Claims, message string) (*bootstrapOutput, error) {
	active, err := a.letIn(ctx, c)
	if err != nil {
		return nil, err
	}
	added, invitations, err := a.membershipOffers(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &bootstrapOutput{Body: bootstrapBody{
		Success: true, Message: message, Data: bootstrapData{Tenants: []ownMembershipBody{}, Invitations: invitations},
	}}
	data := &out.Body.Data
	tenants := a.TenantsOf(c)
	active = activeAmong(tenants, active)
	data.ActiveTenantID, data.ActiveTenantRole = active, a.roleIn(active, c.UserID)
	data.Subscription.Plan, data.Subscription.Status = rest.PlanName(events.FreePlan), string(events.NoSubscription)
	data.User.UID, data.User.Email = c.UserID, c.Email
	data.User.TenantID, data.User.Role = data.ActiveTenantID, data.ActiveTenantRole
	if data.CanonicalTenantID, err = people.CanonicalTenant(ctx, a.Live, a.Directory, c.UserID, tenants); err != nil {
		return nil, err
	}
	data.CanonicalRole = a.roleIn(data.CanonicalTenantID, c.UserID)
	for _, id := range tenants {
		tenant, ok := a.Live.Tenant(id)
		if !ok {
			continue
		}
		role := a.roleIn(id, c.UserID)
		if id == active {
			summary := a.Summarize(tenant.Subscription(), tenant.Sandbox())
			data.Subscription.Plan, data.Subscription.Status = summary.Plan, summary.Status
			data.Subscription.BillingCycle = rest.BillingCycle(tenant.Subscription())
		}
		data.Tenants = append(data.Tenants, ownMembershipBody{id, tenant.Name(), role, added[id]})
	}
	return out, nil
}

// membershipOffers returns, by tenant, who added a person that has not confirmed yet, and the invitations they may
// accept.
func (a *API) membershipOffers(
	ctx context.Context, c people.Claims,
) (map[string]*string, []tenantInvitationBody, error) {
	added, invitations := map[string]*string{}, []tenantInvitationBody{}
	for _, one := range a.SignIn.MembershipOffers(ctx, c) {
		profile, err := a.Directory.Profile(ctx, one.TenantID, one.By)
		if err != nil {
			return nil, nil, err
		}
		name := cmp.Or(profile.DisplayName, profile.Email, rest.ErasedUser)
		if one.Invitation {
			invitations = append(invitations, tenantInvitationBody{one.TenantID, one.TenantName, one.Role, name})
		} else {
			added[one.TenantID] = &name
		}
	}
	return added, invitations, nil
}

// activeAmong returns the active tenant if the person may read it, or else the first that they may read. It returns ""
// if no tenant is active or readable.
func activeAmong(tenants []string, active string) string {
	switch {
	case active == "" || slices.Contains(tenants, active):
		return active
	case len(tenants) > 0:
		return tenants[0]
	default:
		return ""
	}
}

// OpenSession returns the session of a person who just signed in.
func (a *API) OpenSession(ctx context.Context, s people.Session) (*SessionOutput, error) {
	active, err := a.SignIn.LetIn(ctx, rest.RequestBy(ctx), s.Claims)
	if err != nil {
		return nil, err
	}
	return a.showSession(s, active), nil
}

// showSession returns a session with the person's role in the tenant they used last.
func (a *API) showSession(s people.Session, active string) *SessionOutput {
	out := &SessionOutput{
		Body: sessionBody{Token: s.IDToken, RefreshToken: s.RefreshToken, ExpiresIn: int(s.ExpiresIn.Seconds())},
	}
	out.Body.User.ID, out.Body.User.Email, out.Body.User.DisplayName, out.Body.User.Role = s.UserID, s.Email,
		s.DisplayName, a.roleIn(
			activeAmong(a.TenantsOf(s.Claims), active), s.UserID,
		)
	return out
}

// logOut ends the session of the token that the call was made with.
func (a *API) logOut(ctx context.Context, _ *struct{}) (*rest.SuccessOutput, error) {
	done, err := a.SignIn.LogOut(ctx, rest.Runner[state.User](a.Core), rest.PrincipalOf(ctx).Claims)
	return rest.SuccessResponse(done), err
}
