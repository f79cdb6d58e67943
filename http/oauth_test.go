package http_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/http/quota"
)

const clients = "/api/v1/oauth/clients"

// denied checks that a response is an error of the token endpoint: a JSON problem that OAuth clients understand.
func denied(a *nodetest.Answer, status int, name string) *nodetest.Answer {
	a.T.Helper()
	a.Want(status)
	body := a.Object()
	nodetest.Members(a.T, "an error", body, "type", "title", "status", "detail", "instance", "error", "error_description")
	nodetest.Same(a.T, a.Call+": error and status", []any{body["error"], body["status"]}, []any{name, status})
	if description, _ := body["error_description"].(string); description == "" || strings.ContainsAny(description, `"\`) {
		a.T.Errorf("error_description is %q", description)
	}
	nodetest.Same(a.T, "Content-Type and Cache-Control",
		[]string{a.Header.Get("Content-Type"), a.Header.Get("Cache-Control")}, []string{"application/json", "no-store"})
	if got, basic := a.Header.Get("WWW-Authenticate"), status == 401; strings.HasPrefix(got, `Basic realm="`) != basic {
		a.T.Errorf("%s: %d with WWW-Authenticate %q", a.Call, status, got)
	}
	return a
}

func accessToken(a *nodetest.Answer) string {
	a.T.Helper()
	token, _ := a.Want(200).Object()["access_token"].(string)
	return token
}

func TestTokenEndpoint(t *testing.T) {
	const path, form = "/api/v1/oauth/token", "application/x-www-form-urlencoded"
	nodetest.Cases{
		"credentials are traded for a token for all scopes, or those asked for": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read", "projects:read", "flags:evaluate")
			for asked, want := range map[string]string{
				"": "flags:read projects:read flags:evaluate", "flags:evaluate": "flags:evaluate", "projects:read flags:read projects:read": "projects:read flags:read",
			} {
				a := me.Trade(nodetest.Credentials(id, secret, "scope", asked)...).Want(200)
				body := a.Object()
				nodetest.Members(t, "the answer", body, "access_token", "token_type", "expires_in", "scope")
				nodetest.Same(t, "the answer", []any{body["token_type"], body["expires_in"], body["scope"]},
					[]any{"Bearer", 3600, want})
				nodetest.Same(t, "headers", []string{a.Header.Get("Content-Type"), a.Header.Get("Cache-Control")},
					[]string{"application/json", "no-store"})
			}
		},
		"a token is a signed JWT that anybody can verify": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read", "projects:read")
			before := time.Now().Truncate(time.Second)
			text := accessToken(me.Trade(nodetest.Credentials(id, secret)...))
			published := me.Service.Anonymous().Call("GET", "/.well-known/jwks.json", nil).Want(200)
			nodetest.Same(t, "headers", []string{published.Header.Get("Content-Type"), published.Header.Get("Cache-Control")},
				[]string{"application/json", "public, max-age=3600"})
			for _, key := range published.Object()["keys"].([]any) {
				nodetest.Members(t, "a key", key, "kty", "kid", "alg", "use", "n", "e")
			}
			var keys jose.JSONWebKeySet
			published.Decode(&keys)
			token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256})
			if err != nil {
				t.Fatal(err)
			}
			var claims map[string]any
			if err := token.Claims(keys, &claims); err != nil {
				t.Fatal(err)
			}
			header := token.Headers[0]
			nodetest.Same(t, "the header", []any{header.ExtraHeaders["typ"], header.KeyID}, []any{"at+jwt", keys.Keys[0].KeyID})
			nodetest.Members(t, "the claims", claims, "iss", "aud", "sub", "jti", "iat", "exp", "client_id", "tenant_id", "scope")
			for name, want := range map[string]any{
				"iss": me.Service.URL, "aud": me.Service.URL, "sub": id, "client_id": id, "tenant_id": me.Tenant, "scope": "flags:read projects:read", "exp": claims["iat"].(float64) + 3600,
			} {
				nodetest.Same(t, name, claims[name], want)
			}
			if at := time.Unix(int64(claims["iat"].(float64)), 0); at.Before(before) || at.After(time.Now()) {
				t.Errorf("issued at %v", at)
			}
			if other := accessToken(me.Trade(nodetest.Credentials(id, secret)...)); other == text {
				t.Error("two tokens are the same")
			}
		},
		"credentials may come as HTTP Basic, percent-encoded": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read")
			basic := func(user, password, body string) *nodetest.Answer {
				header := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
				return me.Service.Anonymous().Call("POST", path, body, "Content-Type", form, "Authorization", header)
			}
			const grant = "grant_type=client_credentials"
			escaped := ""
			for _, b := range []byte(secret) {
				escaped += fmt.Sprintf("%%%02X", b)
			}
			basic(id, secret, grant).Want(200)
			basic(id, escaped, grant).Want(200)
			basic(strings.ReplaceAll(id, "-", "%2d"), secret, grant).Want(200)
			basic(id, secret, grant+"&client_id="+id).Want(200)
			basic(id, secret, grant+"&client_secret=").Want(200)
			denied(basic(id, secret+"x", grant), 401, "invalid_client")
			denied(basic(id, "", grant), 401, "invalid_client")
			denied(basic(id, secret+"%zz", grant), 401, "invalid_client")
			denied(basic(id, secret, grant+"&client_secret="+secret), 400, "invalid_request")
			denied(basic(id, secret, grant+"&client_id=other"), 400, "invalid_request")
			for _, header := range []string{"Basic", "Basic !", "basic " + base64.StdEncoding.EncodeToString([]byte("no colon"))} {
				denied(me.Service.Anonymous().Call("POST", path, grant, "Content-Type", form, "Authorization", header), 401,
					"invalid_client")
			}
			// beside a bearer token
			me.Call("POST", path, url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode(), "Content-Type", form).
				Want(200)
		},
		"what is wrong is told in OAuth's words": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read", "flags:evaluate")
			good := nodetest.Credentials(id, secret)
			denied(me.Trade(), 400, "invalid_request")
			denied(me.Trade("grant_type", ""), 400, "invalid_request")
			denied(me.Trade("grant_type", "password", "client_id", id, "client_secret", secret), 400, "unsupported_grant_type")
			denied(me.Trade("grant_type", "client_credentials"), 401, "invalid_client")
			denied(me.Trade(good[:4]...), 401, "invalid_client")
			denied(me.Trade(nodetest.Credentials(id, secret+"x")...), 401, "invalid_client")
			denied(me.Trade(nodetest.Credentials(id, "")...), 401, "invalid_client")
			denied(me.Trade(nodetest.Credentials(uuid.NewString(), secret)...), 401, "invalid_client")
			denied(me.Trade(nodetest.Credentials("\x00\xff", secret)...), 401, "invalid_client")
			for _, scope := range []string{"flags:write", "flags:read flags:write", "everything", "FLAGS:READ", " ", "flags:read,flags:evaluate", "flags:read\tflags:evaluate", `"\`} {
				denied(me.Trade(append(good, "scope", scope)...), 400, "invalid_scope")
			}
			for _, name := range []string{"grant_type", "client_id", "client_secret", "scope"} {
				denied(me.Trade(append(good, "scope", "flags:read", name, "again")...), 400, "invalid_request")
			}
			me.Trade(append(good, "audience", "x", "audience", "y", "resource", "")...).Want(200)
			send := func(body string, headers ...string) *nodetest.Answer {
				return me.Service.Anonymous().Call("POST", path, body, append([]string{"Content-Type", form}, headers...)...)
			}
			denied(send("grant_type=%zz"), 400, "invalid_request")
			denied(send("grant_type=client_credentials;client_id="+id), 400, "invalid_request")
			denied(send(strings.Repeat("x", 1<<20+1)), 400, "invalid_request")
			denied(send("grant_type=x", "X-Correlation-ID", strings.Repeat("x", 200)), 400, "invalid_request")
			for _, media := range []string{"application/json", "text/plain", "multipart/form-data; boundary=x", ""} {
				denied(send("grant_type=client_credentials", "Content-Type", media), 415, "invalid_request")
			}
			send(url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode(),
				"Content-Type", "Application/X-WWW-Form-URLEncoded; charset=utf-8").Want(200)
			denied(me.Service.Anonymous().Call("GET", path, nil), 405, "invalid_request")
		},
		"credentials are not taken from the URL": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read")
			query := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode()
			denied(me.Service.Anonymous().Call("POST", path+"?"+query, "grant_type=client_credentials", "Content-Type", form),
				400, "invalid_request")
			denied(
				me.Service.Anonymous().
					Call("POST", path+"?client_secret="+secret, "grant_type=client_credentials&client_id="+id, "Content-Type", form),
				400,
				"invalid_request",
			)
			me.Service.Anonymous().Lenient().Call("POST", path+"?trace=1", query, "Content-Type", form).Want(200)
		},
		"guessing ends with 429, and does not keep the client out": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read")
			count := map[int]int{}
			for range 50 {
				count[me.Trade(nodetest.Credentials(id, "guess")...).Status]++
			}
			if count[401] == 0 || count[429] == 0 || count[401]+count[429] != 50 {
				t.Errorf("50 guesses are answered with %v", count)
			}
			a := denied(me.Trade(nodetest.Credentials(id, "guess")...), 429, "temporarily_unavailable")
			if a.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			me.Trade(nodetest.Credentials(id, secret)...).Want(200)
		},
	}.Run(t)
}

// clock is a clock that a test sets.
type clock struct {
	mu      sync.Mutex
	stopped time.Time // if set, the clock moves only by add
	offset  time.Duration
}

// stopped returns a clock that moves only by add: no minute ends while a test counts requests, however long it takes.
func stopped() *clock { return &clock{stopped: time.Now()} }

// withinADay returns a clock whose UTC day lasts at least ten more minutes, longer than a test that counts by day.
func withinADay() *clock {
	c, now := &clock{}, time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < 10*time.Minute {
		c.offset = left
	}
	return c
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped.Add(c.offset)
	}
	return time.Now().Add(c.offset)
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

func TestOAuthInTime(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Now: c.now}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	id, first := me.OAuthClient("x", "flags:read")
	second := me.Call("POST", clients+"/"+id+"/rotate", nil).Want(200).Object()["clientSecret"].(string)

	machine := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, first)...)))
	c.add(59 * time.Minute)
	machine.Call("GET", "/api/v1/flags", nil).Want(200)
	c.add(2 * time.Minute)
	machine.Call("GET", "/api/v1/flags", nil).Refused(401)
	machine.Call("GET", "/api/v1/flags", nil).Refused(401)

	c.add(24*time.Hour - 62*time.Minute)
	me.Trade(nodetest.Credentials(id, first)...).Want(200)
	c.add(2 * time.Minute)
	denied(me.Trade(nodetest.Credentials(id, first)...), 401, "invalid_client")
	me.Trade(nodetest.Credentials(id, second)...).Want(200)

	// A node that starts when a key is due publishes the next one, which signs a day later.
	keys := func(s *nodetest.Service) []any {
		return s.Anonymous().Call("GET", "/.well-known/jwks.json", nil).Want(200).Object()["keys"].([]any)
	}
	c.add(29 * 24 * time.Hour)
	there := s.SecondNode()
	nodetest.Same(t, "keys", len(keys(there)), 2)
	trade := func(s *nodetest.Service) (kid any) {
		t.Helper()
		on := *me
		on.Service = s
		token := accessToken(on.Trade(nodetest.Credentials(id, second)...))
		s.Eventually("the token works",
			func() bool { return on.WithToken(token).Call("GET", "/api/v1/flags", nil).Status == 200 })
		var header map[string]any
		text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
		if err == nil {
			err = json.Unmarshal(text, &header)
		}
		if err != nil {
			t.Fatal(err)
		}
		return header["kid"]
	}
	newest := keys(there)[0].(map[string]any)["kid"]
	if trade(there) == newest {
		t.Error("the next key signs as soon as it is published")
	}
	c.add(25 * time.Hour)
	nodetest.Same(t, "who signs", trade(there), newest)
	on := *me
	on.Token = withTokenOf(me, there, id, second)
	on.Call("GET", "/api/v1/flags", nil).Want(200) // on the first node, which reads the keys again when it sees a new one
}

// withTokenOf returns a client with a token from a node.
func withTokenOf(c *nodetest.Client, s *nodetest.Service, id, secret string) string {
	c.Service.T.Helper()
	on := *c
	on.Service = s
	return accessToken(on.Trade(nodetest.Credentials(id, secret)...))
}

// A token costs a signature, as much as hundreds of evaluations: a client's token requests count for its tenant from
// any address.
func TestTokensCountForTheTenant(t *testing.T) {
	t.Parallel()
	const most = 60
	c := stopped()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		Limits: quota.Limits{
			Plans:     map[events.Plan]int{events.FreePlan: most, events.SandboxPlan: most},
			Anonymous: 1_000_000,
			Auth:      1_000_000,
		},
		Now: c.now,
	}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	there := me.NewTenant("another")
	ids, secrets := [2]string{}, [2]string{}
	for i, in := range []*nodetest.Client{me, there} {
		ids[i], secrets[i] = in.OAuthClient("x", "flags:read")
	}
	trade := func(i int) *nodetest.Answer { return me.Trade(nodetest.Credentials(ids[i%2], secrets[i%2])...) }
	n := 0
	for n <= most && trade(n).Status == 200 {
		n++
	}
	if n > most || n < most/2 {
		t.Errorf("%d tokens are given, want %d at most", n, most)
	}
	for i := range 2 {
		refused := denied(trade(i), 429, "temporarily_unavailable")
		nodetest.Same(t, "the limit that refuses", refused.Header["Ratelimit-Limit"], []string{fmt.Sprint(most)})
		nodetest.Same(t, "Retry-After", refused.Header.Get("Retry-After"), refused.Header["Ratelimit-Reset"][0])
	}
	denied(me.Trade(nodetest.Credentials(ids[0], "wrong")...), 401, "invalid_client")
	other := s.SignUp("other@example.com")
	id, secret := other.OAuthClient("x", "flags:read")
	for range most / 4 {
		other.Trade(nodetest.Credentials(id, "wrong")...) // which does not count for the tenant
	}
	other.Trade(nodetest.Credentials(id, secret)...).Want(200)
	c.add(time.Minute)
	trade(0).Want(200)
}

// Token signatures wait in a queue in which a creator's free tenants share one flow. Session refreshes wait in another,
// with one flow for each site.
func TestTokensAndSessionsWaitInQueues(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	id, secret := me.NewTenant("another").OAuthClient("x", "flags:read")
	free := occupy(s.Node.API.Queues.CPU, me.UserID)
	defer free()
	denied(me.Trade(nodetest.Credentials(id, secret)...), 429, "temporarily_unavailable")
	denied(me.Trade(nodetest.Credentials(id, "wrong")...), 401, "invalid_client")
	free()
	me.Trade(nodetest.Credentials(id, secret)...).Want(200)

	account := newAccount(me)
	refresh := func() *nodetest.Answer {
		return s.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh})
	}
	free = occupy(s.Node.API.Queues.Memory, "site 127.0.0.1/32")
	defer free()
	refresh().Refused(429)
	free()
	refresh().Want(200)
}
