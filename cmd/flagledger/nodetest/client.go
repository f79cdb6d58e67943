package nodetest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"flagledger/events"
)

// Client calls a service, with its token and tenant if it has them.
type Client struct {
	Service *Service
	Token   string
	Tenant  string
	UserID  string
	Email   string // empty for a machine

	lenient bool // see Lenient
}

// Anonymous returns a client without a token.
func (s *Service) Anonymous() *Client { return &Client{Service: s} }

// Password is the password of every account that tests create.
const Password = "correct horse"

// SignUp creates an account, which gets a tenant of its own.
func (s *Service) SignUp(email string) *Client {
	s.T.Helper()
	var session struct {
		Token string
		User  struct{ ID string }
	}
	s.Anonymous().
		Call("POST", "/auth/signup", map[string]string{"email": email, "password": Password}).
		Want(201).
		Decode(&session)
	c := &Client{Service: s, Token: session.Token, UserID: session.User.ID, Email: email}
	var tenants []struct{ ID string }
	c.Answered("GET", "/api/v1/tenants", nil).Want(200).Decode(&tenants) // once the read models are built
	c.Tenant = tenants[0].ID
	return c
}

// Answered makes a call that may be repeated, until the service is not too busy to answer it (503).
func (c *Client) Answered(method, path string, body any, headers ...string) (a *Answer) {
	c.Service.T.Helper()
	c.Service.Eventually("the service answers "+method+" "+path, func() bool {
		a = c.Call(method, path, body, headers...)
		return a.Status != 503
	})
	return a
}

// NewTenant creates another tenant for the same person.
func (c *Client) NewTenant(name string) *Client {
	c.Service.T.Helper()
	other := *c
	other.Tenant = c.Call("POST", "/api/v1/tenants", map[string]string{"name": name}).Want(201).Object()["id"].(string)
	return &other
}

// Join adds a new person to the client's tenant: invites them and signs them up.
func (c *Client) Join(role events.Role) *Client {
	c.Service.T.Helper()
	email := Address()
	c.Call("POST", "/api/v1/tenants/"+c.Tenant+"/users", map[string]any{"email": email, "role": role}).Want(201)
	member := c.Service.SignUp(email)
	member.Tenant = c.Tenant
	return member
}

// Stay confirms a new member's membership in the client's tenant.
func (c *Client) Stay() *Client {
	c.Service.T.Helper()
	anywhere := *c
	anywhere.Tenant = ""
	anywhere.Call("POST", "/api/v1/tenants/"+c.Tenant+"/membership/accept", nil).Want(200)
	return c
}

// Machine creates an OAuth client in the client's tenant, with a token for all of its scopes.
func (c *Client) Machine(scopes ...string) *Client {
	c.Service.T.Helper()
	id, secret := c.OAuthClient("Machine", scopes...)
	m := &Client{Service: c.Service, Tenant: c.Tenant, UserID: id}
	m.Token = m.Trade("grant_type", "client_credentials", "client_id", id, "client_secret",
		secret).Want(200).Object()["access_token"].(string)
	return m
}

// OAuthClient creates an OAuth client in the client's tenant.
func (c *Client) OAuthClient(name string, scopes ...string) (id, secret string) {
	c.Service.T.Helper()
	body := c.Call("POST", "/api/v1/oauth/clients", map[string]any{"name": name, "scopes": scopes}).Want(201).Object()
	return body["clientId"].(string), body["clientSecret"].(string)
}

// Trade requests a token from the token endpoint, with a form of names and values.
func (c *Client) Trade(form ...string) *Answer {
	c.Service.T.Helper()
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	return c.Service.Anonymous().
		Call("POST", "/api/v1/oauth/token", values.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// Address returns a unique e-mail address.
func Address() string { return strings.ToLower(rand.Text()) + "@example.com" }

// httpClient has a timeout that no call reaches, so that no test hangs.
var httpClient = &http.Client{Timeout: 2 * time.Minute}

// Lenient returns the client for calls that deliberately send what the OpenAPI document does not describe and the
// service accepts: null for an omitted member, or a member that it ignores.
func (c *Client) Lenient() *Client {
	lenient := *c
	lenient.lenient = true
	return &lenient
}

// Call makes a call. It checks the response, and the request if it was accepted, against the OpenAPI document. A string
// or bytes are sent as they are, any other body as JSON. headers are pairs of name and value; an empty value removes
// the header.
func (c *Client) Call(method, path string, body any, headers ...string) *Answer {
	c.Service.T.Helper()
	var text []byte
	var err error
	switch body := body.(type) {
	case nil:
	case string:
		text = []byte(body)
	case []byte:
		text = body
	default:
		if text, err = json.Marshal(body); err != nil {
			c.Service.T.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(c.Service.T.Context(), method, c.Service.URL+path, bytes.NewReader(text))
	if err != nil {
		c.Service.T.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Tenant != "" {
		r.Header.Set("X-Tenant-ID", c.Tenant)
	}
	var named []string
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
			named = append(named, headers[i])
		}
	}
	if c.Service.Chunked {
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(text)), -1, []string{"chunked"}
	}
	response, err := httpClient.Do(r)
	if err != nil {
		c.Service.T.Fatal(err)
	}
	defer response.Body.Close()
	a := &Answer{T: c.Service.T, Call: method + " " + path, Status: response.StatusCode, Header: response.Header}
	if a.Body, err = io.ReadAll(response.Body); err != nil {
		c.Service.T.Fatal(err)
	}
	c.Service.checkDocumented(a)
	c.Service.checkAddresses(a, response.Request.URL)
	if !c.lenient {
		c.Service.checkRequested(request{r, strings.TrimPrefix(r.URL.EscapedPath(), c.Service.path()), text, named}, a)
	}
	if c.Service.Seen != nil {
		c.Service.Seen(a)
	}
	return a
}

// Document reads the OpenAPI document. operations has a key for each method and path.
func (c *Client) Document() (whole map[string]any, operations map[string]map[string]any) {
	c.Service.T.Helper()
	whole, operations = c.Call("GET", "/openapi.json", nil).Want(200).Object(), map[string]map[string]any{}
	for path, item := range whole["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			operations[strings.ToUpper(method)+" "+path] = operation.(map[string]any)
		}
	}
	return whole, operations
}

// WithToken returns the client with another token.
func (c *Client) WithToken(token string) *Client {
	m := *c
	m.Token = token
	return &m
}

// Credentials returns the form of a token request, for Trade.
func Credentials(id, secret string, more ...string) []string {
	return append([]string{"grant_type", "client_credentials", "client_id", id, "client_secret", secret}, more...)
}
