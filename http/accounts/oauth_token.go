package accounts

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands/keep/keys"
	"flagledger/commands/oauth"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
)

const (
	formType = "application/x-www-form-urlencoded"
)

// The errors of the token endpoint (RFC 6749, 5.2).
const (
	invalidScope         = "invalid_scope"
	unsupportedGrantType = "unsupported_grant_type"
)

const wrongClient = "the client's id or secret is wrong"

// tokenBody is the response of the token endpoint (RFC 6749, 5.1).
type tokenBody struct {
	AccessToken string `json:"access_token" example:"eyJhbGciOiJSUzI1NiIsImtpZCI6IjE3In0..."`
	TokenType   string `json:"token_type" enum:"Bearer"`
	ExpiresIn   int    `json:"expires_in" doc:"Seconds" example:"3600"`
	Scope       string `json:"scope" doc:"The token's scopes, separated by spaces" example:"flags:read flags:evaluate"`
}

// tokenForm documents the request of the token endpoint.
type tokenForm struct {
	_ struct{} `additionalProperties:"true"` // ignored

	GrantType    string `json:"grant_type" enum:"client_credentials"`
	ClientID     string `json:"client_id,omitempty" doc:"Here, or as the user of HTTP Basic" example:"0198c5a1-b6d4-7e38-a5f1-3c9d7e1b5f08"`
	ClientSecret string `json:"client_secret,omitempty" doc:"Here, or as the password of HTTP Basic" example:"Vv3mQd8Zr1kX5pT9yB2nL7cF4hJ6wS0a"`
	Scope        string `json:"scope,omitempty" doc:"Scopes separated by spaces; all of the client's by default" example:"flags:read flags:evaluate"`
}

// issueToken serves the token endpoint. It is not a huma operation, as its requests are not JSON.
func (a *API) issueToken(w http.ResponseWriter, r *http.Request) {
	answer, err := a.grant(r)
	if err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = strictjson.Write(w, answer)
}

func (a *API) grant(r *http.Request) (*tokenBody, error) {
	form, err := readForm(r)
	if err != nil {
		return nil, err
	}
	switch form.Get("grant_type") {
	case "client_credentials":
	case "":
		return nil, rest.OAuthProblem(rest.InvalidRequest, "grant_type is required")
	default:
		return nil, rest.OAuthProblem(unsupportedGrantType, "grant_type must be client_credentials")
	}
	client, err := a.authenticateClient(r, form)
	if err != nil {
		return nil, err
	}
	scopes := client.Scopes
	if asked := form.Get("scope"); asked != "" {
		if scopes, err = narrow(client.Scopes, asked); err != nil {
			return nil, err
		}
	}
	text, err := a.signToken(r, client, scopes)
	if err != nil {
		return nil, err
	}
	return &tokenBody{
		AccessToken: text,
		TokenType:   "Bearer",
		ExpiresIn:   int(keys.TokenTTL.Seconds()),
		Scope:       oauth.Join(scopes),
	}, nil
}

// signToken signs a token for an authenticated client. It counts against the client's rate limit and waits for a slot,
// as a signature costs as much as hundreds of evaluations. A refusal is a problem.
func (a *API) signToken(r *http.Request, client *snapshot.Client, scopes []events.Scope) (string, error) {
	p := &rest.Principal{Credential: &rest.Credential{Machine: &rest.Machine{ClientID: client.ID,
		TenantID: client.TenantID}}}
	var ok bool
	if p.Tenant, ok = a.Live.Tenant(client.TenantID); !ok { // it was just deleted
		return "", rest.OAuthProblem(rest.InvalidClient, wrongClient)
	}
	if left := a.CountAuthenticated(r, p.Credential); left.Exceeded {
		return "", rest.TooManyRequests(left, "")
	}
	slot, err := a.EnterQueue(r.Context(), a.Queues.CPU, p)
	if err != nil {
		return "", err
	}
	defer slot.Leave()
	return a.Verifier.Machines.Issue(client.ID, client.TenantID, scopes)
}

// readForm reads the parameters of a request to the token endpoint. It ignores unknown ones and treats empty ones as
// absent.
func readForm(r *http.Request) (url.Values, error) {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(media),
		formType) {
		return nil, rest.NewProblem(http.StatusUnsupportedMediaType, "the body must be of the type "+formType)
	}
	body, err := rest.SmallBody(r)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, rest.NewProblem(http.StatusBadRequest, rest.MissingBody)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, rest.OAuthProblem(rest.InvalidRequest,
			"the form cannot be read: a name or a value is not percent-encoded correctly")
	}
	query := r.URL.Query()
	for _, name := range []string{"grant_type", "client_id", "client_secret", "scope"} {
		if len(form[name]) > 1 {
			return nil, rest.OAuthProblem(rest.InvalidRequest, name+" must be sent once")
		}
		if query.Has(name) {
			return nil, rest.OAuthProblem(rest.InvalidRequest, name+" must be in the body, not in the URL")
		}
	}
	return form, nil
}

// authenticateClient returns the client whose credentials a request has, in the form or as HTTP Basic.
func (a *API) authenticateClient(r *http.Request, form url.Values) (*snapshot.Client, error) {
	id, secret := events.CanonicalID(form.Get("client_id")), form.Get("client_secret")
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Basic") {
		if secret != "" {
			return nil, rest.OAuthProblem(rest.InvalidRequest, "the client's secret must be sent once")
		}
		user, password, ok := r.BasicAuth()
		basicID, malformedID := url.QueryUnescape(user)
		basicSecret, malformedSecret := url.QueryUnescape(password)
		if !ok || malformedID != nil || malformedSecret != nil {
			return nil, rest.OAuthProblem(rest.InvalidClient, "the client's credentials cannot be read")
		}
		if basicID = events.CanonicalID(basicID); id != "" && id != basicID {
			return nil, rest.OAuthProblem(rest.InvalidRequest, "client_id names another client than the credentials")
		}
		id, secret = basicID, basicSecret
	}
	if id == "" || secret == "" {
		return nil, rest.OAuthProblem(rest.InvalidClient, "the client's id and secret are required")
	}
	client, known := a.Live.Client(id)
	if !known {
		client = &snapshot.Client{}
	}
	if !client.HasSecret(sha256.Sum256([]byte(secret)), a.Now()) {
		// The right secret always passes: 256 bits cannot be guessed, and an attacker must not lock a client out.
		return nil, a.LimitAttempts(r.Context(), "client "+id,
			func() error { return rest.OAuthProblem(rest.InvalidClient, wrongClient) })
	}
	return client, nil
}

// narrow returns the requested scopes, separated by any number of spaces. The client must have each of them.
func narrow(has []events.Scope, asked string) (scopes []events.Scope, err error) {
	names := strings.FieldsFunc(asked, func(r rune) bool { return r == ' ' })
	if len(names) == 0 {
		return nil, rest.OAuthProblem(invalidScope, "scope is empty; omit it for all of the client's scopes")
	}
	for _, name := range names {
		scope := events.Scope(name)
		if !slices.Contains(has, scope) {
			return nil, rest.OAuthProblem(invalidScope, "the client does not have all of these scopes")
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// documentToken describes the token endpoint.
func (a *API) documentToken() {
	doc := a.Huma.OpenAPI()
	schema := func(v any) *huma.Schema { return doc.Components.Schemas.Schema(reflect.TypeOf(v), true, "") }
	op := rest.Operation("POST", rest.GrantRoute, "get-token", "OAuth",
		"Exchange a client's credentials for an access token")
	op.Description = "OAuth 2.0 client credentials (RFC 6749). Errors are problems with the additional members `error` " +
		"and `error_description`. The call counts as one of the tenant's: reuse a token until it expires."
	op.RequestBody = &huma.RequestBody{
		Required: true,
		Content:  map[string]*huma.MediaType{formType: {Schema: schema(tokenForm{})}},
	}
	op.Responses = map[string]*huma.Response{
		"200": {Description: "OK", Content: map[string]*huma.MediaType{"application/json": {Schema: schema(tokenBody{})}}},
	}
	op.Errors = []int{http.StatusUnauthorized}
	doc.AddOperation(&op)
	for _, old := range rest.Aliases(op) {
		doc.AddOperation(&old)
	}
}
