package http_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/keep/keys"
	"flagledger/events"
)

// scopeOf returns the scope that a machine needs for an operation, "" if no machine may call it: the interface's table,
// by path.
func scopeOf(name string) string {
	method, path, _ := strings.Cut(current(name), " ")
	reads := method == "GET"
	switch {
	case strings.HasSuffix(path, "/evaluate") || strings.HasPrefix(path, "/ofrep/") || path == "/api/v1/flags/stream" ||
		path == "/api/v1/usage" || path == "/v1/logs":
		return "flags:evaluate"
	case path == "/api/v1/feed":
		return "flags:sync"
	case strings.HasPrefix(path, "/api/v1/segments") && (reads || strings.HasSuffix(path, "/check")):
		return "flags:read"
	case strings.HasPrefix(path, "/api/v1/segments") && !strings.HasSuffix(path, "/forget"):
		return "flags:write"
	case (strings.HasPrefix(path, "/api/v1/flags") || path == "/api/v1/cleanup" || path == "/api/v1/tags" || path == "/api/v1/config") && reads:
		return "flags:read"
	case strings.HasPrefix(path, "/api/v1/flags"):
		return "flags:write"
	case strings.HasPrefix(path, "/api/v1/projects") && reads:
		return "projects:read"
	case strings.HasPrefix(path, "/api/v1/projects"):
		return "projects:write"
	default:
		return ""
	}
}

var scopes = []string{"flags:read", "flags:write", "flags:evaluate", "flags:sync", "projects:read", "projects:write"}

// forger makes tokens with a single fault.
type forger struct {
	t      *testing.T
	claims map[string]any
	header map[string]any
	key    *rsa.PrivateKey // the service's signing key
}

func newForger(t *testing.T, s *nodetest.Service, token string) forger {
	t.Helper()
	f := forger{t: t}
	parts := strings.Split(token, ".")
	for i, into := range []*map[string]any{&f.header, &f.claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var stored []byte
	if err := pool.QueryRow(t.Context(), `select private_key from keep.signing_keys where kid = $1`, f.header["kid"]).
		Scan(&stored); err != nil {
		t.Fatal(err)
	}
	secret, err := keys.ParseSecret(nodetest.Secret)
	if err != nil {
		t.Fatal(err)
	}
	box, err := secret.Box("signing keys")
	if err != nil {
		t.Fatal(err)
	}
	der, _, ok := box.Decrypt(stored[1:], []byte(f.header["kid"].(string)))
	if !ok {
		t.Fatal("the key does not open")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	f.key = parsed.(*rsa.PrivateKey)
	return f
}

// with signs the claims with one of them changed.
func (f forger) with(claim string, value any) string {
	f.t.Helper()
	claims := maps.Clone(f.claims)
	claims[claim] = value
	return f.sign(jose.RS256, f.key, claims)
}

func (f forger) sign(algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	f.t.Helper()
	options := (&jose.SignerOptions{}).WithHeader("kid", f.header["kid"])
	if kind, ok := f.header["typ"].(string); ok {
		options = options.WithType(jose.ContentType(kind))
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		f.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		f.t.Fatal(err)
	}
	return token
}

// forgeries are invalid tokens by their fault.
func (f forger) forgeries() map[string]string {
	f.t.Helper()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&f.key.PublicKey)
	if err != nil {
		f.t.Fatal(err)
	}
	body := strings.Split(f.with("sub", f.claims["sub"]), ".")[1]
	return map[string]string{
		"expired":                    f.with("exp", time.Now().Add(-time.Hour).Unix()),
		"of another issuer":          f.with("iss", "https://elsewhere.example"),
		"for another audience":       f.with("aud", "elsewhere"),
		"signed with another key":    f.sign(jose.RS256, other, f.claims),
		"signed with the public key": f.sign(jose.HS256, public, f.claims),
		"of another algorithm":       f.sign(jose.RS512, f.key, f.claims),
		"not signed":                 base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + body + ".",
		"cut off":                    f.with("sub", f.claims["sub"])[:40],
		"no token at all":            "secret",
		"with the signature of other": strings.Join(
			append(strings.Split(f.with("sub", "x"), ".")[:2], strings.Split(f.with("sub", "y"), ".")[2]), ".",
		),
	}
}

// caller is a caller of the matrix.
type caller struct {
	*nodetest.Client
	forged bool
	// refusal returns the status of a refused operation, or 0.
	refusal func(name, least string) int
}

// shareOfForged is 4: each forged token is tried on every fourth operation. All tokens pass the same check, so each
// operation still meets several tokens, and each token many operations.
const shareOfForged = 4

// everyone lists all callers of the matrix, who all name the owner's tenant.
func everyone(t *testing.T, owner, super *nodetest.Client) map[string]caller {
	t.Helper()
	as := func(c *nodetest.Client, refusal func(name, least string) int) caller {
		return caller{
			Client:  &nodetest.Client{Service: owner.Service, Token: c.Token, Tenant: owner.Tenant, UserID: c.UserID},
			refusal: refusal,
		}
	}
	member := func(role string) func(_, least string) int {
		return func(_, least string) int {
			if roleRank(least) > roleRank(role) {
				return 403
			}
			return 0
		}
	}
	unless := func(least string, status int) int {
		if least == "anyone" {
			return 0
		}
		return status
	}
	stranger := owner.Service.SignUp(nodetest.Address())
	shutOut := owner.Join("admin")
	super.Call("PATCH", usersOfPlatform+"/"+shutOut.UserID+"/deactivate", nil).Want(200)
	_, serverKey := createKey(owner, "server", nil)
	_, browserKey := createKey(owner, "browser", nil)
	_, strangerKey := createKey(stranger, "server", nil)
	all := map[string]caller{
		"nobody":    as(&nodetest.Client{}, func(_, least string) int { return unless(least, 401) }),
		"viewer":    as(owner.Join(events.ViewerRole), member("viewer")),
		"developer": as(owner.Join(events.DeveloperRole), member("developer")),
		"admin":     as(owner.Join(events.AdminRole), member("admin")),
		"another tenant's admin": as(stranger, func(_, least string) int {
			if roleRank(least) >= roleRank("viewer") {
				return 403
			}
			return 0
		}),
		"a deactivated admin": as(shutOut, func(_, least string) int { return unless(least, 403) }),
		"a machine with all scopes": as(owner.Machine(scopes...), func(name, least string) int {
			if scopeOf(name) != "" {
				return 0
			}
			return unless(least, 403)
		}),
		"a server key": as(serverKey, func(name, least string) int {
			scope := scopeOf(name)
			if scope == "flags:sync" || scope == "flags:evaluate" && !strings.HasSuffix(name, "/rules/evaluate") {
				return 0
			}
			return unless(least, 403)
		}),
		"a browser key": as(browserKey, func(name, least string) int {
			if scopeOf(name) == "flags:evaluate" && !strings.HasSuffix(name, "/rules/evaluate") && !strings.Contains(name, " /api/flags") {
				return 0
			}
			return unless(least, 403)
		}),
		"another tenant's key":     as(strangerKey, func(_, least string) int { return unless(least, 403) }),
		"another tenant's machine": as(stranger.Machine(scopes...), func(_, least string) int { return unless(least, 403) }),
	}
	for _, scope := range scopes {
		others := slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == scope })
		all["a machine without "+scope] = as(owner.Machine(others...), func(name, least string) int {
			reads := strings.HasSuffix(name, "/rules/evaluate") && scope == "flags:read" // which it needs, too
			if needs := scopeOf(name); needs != "" && needs != scope && !reads {
				return 0
			}
			return unless(least, 403)
		})
	}
	for kind, token := range map[string]string{"an ID token ": owner.Token, "a machine token ": owner.Machine(scopes...).Token} {
		for what, forged := range newForger(t, owner.Service, token).forgeries() {
			c := as(&nodetest.Client{Token: forged}, func(_, least string) int { return unless(least, 401) })
			c.forged = true
			all[kind+what] = c
		}
	}
	return all
}

// ending lists operations that take from other callers what they need, that never end, or that people may not call at
// all. They are tried only by callers without permission.
var ending = []string{
	"POST /api/v1/auth/logout",
	"DELETE /api/v1/tenants/{tenantId}",
	"DELETE /api/tenants/{tenantId}",
	"GET /api/v1/flags/stream",
	"GET /api/v1/feed",
	"POST /api/v1/usage",
	"POST /v1/logs",
	"POST /api/v1/tenants/{tenantId}/membership/decline",
}

// Every caller tries every operation: each is admitted or refused as the tables say, and a refused call writes nothing.
// An operation without an entry in leastRoles fails.
func TestSecurityMatrix(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t),
		settings.Config{Environment: "development", SuperUsers: []string{"root@example.com"}}, nodetest.Log(t))
	super, owner := s.SignUp("root@example.com"), s.SignUp("owner@example.com")
	everybody := everyone(t, owner, super)
	_, operations := owner.Document()
	store := s.Store()
	before, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names, tried := slices.Sorted(maps.Keys(operations)), map[string]map[string]map[string]any{}
	for i, who := range slices.Sorted(maps.Keys(everybody)) {
		if tried[who] = operations; everybody[who].forged {
			tried[who] = map[string]map[string]any{}
			for n := i % shareOfForged; n < len(names); n += shareOfForged {
				tried[who][names[n]] = operations[names[n]]
			}
		}
	}
	requests := map[string]bool{}
	for who, c := range everybody {
		tryAll(
			c.Client,
			tried[who],
			func(name, least string) bool { return c.refusal(name, least) != 0 },
			func(name, least string, a *nodetest.Answer) {
				requests[a.Header.Get("X-Request-ID")] = true
				if want := c.refusal(name, least); a.Status != want {
					t.Errorf("%s calls %s: %d, want %d: %s", who, name, a.Status, want, a.Body)
				}
			},
		)
	}
	written := s.Written(store, before, func(e events.Recorded) bool {
		return requests[e.RequestID] || e.Actor.ID == owner.UserID || strings.Contains(e.Stream, owner.Tenant)
	})
	if len(written) > 0 {
		t.Errorf("calls that were refused have written %v", written)
	}
	for who, c := range everybody {
		tryAll(
			c.Client,
			tried[who],
			func(name, least string) bool { return c.refusal(name, least) == 0 && !slices.Contains(ending, name) },
			func(name, least string, a *nodetest.Answer) {
				if least == "" {
					t.Errorf("%s has no entry in leastRoles", name)
				}
				if a.Status == 403 || a.Status >= 500 || a.Status == 401 && least != "anyone" {
					t.Errorf("%s calls %s: %d: %s", who, name, a.Status, a.Body)
				}
			},
		)
	}
}

// tryAll calls operations on missing things, so that nothing changes, and passes on the responses.
func tryAll(
	c *nodetest.Client, operations map[string]map[string]any, chosen func(name, least string) bool,
	check func(name, least string, a *nodetest.Answer),
) {
	for name, operation := range operations {
		least := leastRole(name)
		if !chosen(name, least) {
			continue
		}
		method, path, _ := strings.Cut(name, " ")
		var body any
		if operation["requestBody"] != nil {
			body = `{}`
		}
		check(name, least, c.Call(method, filled(c, path), body))
	}
}

var parameterPattern = regexp.MustCompile(`\{[a-zA-Z]+\}`)

// filled returns a path of missing things in the client's tenant.
func filled(c *nodetest.Client, path string) string {
	return parameterPattern.ReplaceAllStringFunc(
		strings.Replace(path, "{tenantId}", c.Tenant, 1),
		func(name string) string {
			if strings.HasSuffix(name, "Id}") {
				return uuid.NewString()
			}
			return "none"
		},
	)
}

// Unknown members are refused in any spelling, and so are duplicates.
func TestMassAssignment(t *testing.T) {
	nodetest.Cases{
		"bodies": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			variation := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
			_, project := me.CreateProject("p")
			for _, c := range []struct{ method, path, body, field string }{
				{"POST", usersPath(me), `{"email":"a@example.com","role":"viewer","ROLE":"admin"}`, "ROLE"},
				{"POST", usersPath(me), `{"email":"a@example.com","role":"viewer","pending":false}`, "pending"},
				{"PATCH", usersPath(me, me.UserID), `{"role":"admin","userId":"x"}`, "userId"},
				{"POST", "/api/v1/tenants", `{"name":"x","role":"super_user"}`, "role"},
				{"POST", "/api/v1/tenants", `{"name":"x","subscription":{"plan":"enterprise"}}`, "subscription"},
				{"PATCH", "/api/v1/tenants/" + me.Tenant, `{"isSandbox":true}`, "isSandbox"},
				{"POST", "/api/v1/projects", `{"name":"x","tenantId":"y"}`, "tenantId"},
				{"PATCH", project, `{"flagCount":0}`, "flagCount"},
				{"POST", "/api/v1/flags", `{"key":"x","type":"boolean","status":"archived"}`, "status"},
				{"POST", "/api/v1/flags", `{"key":"x","type":"boolean","enabled":true}`, "enabled"},
				{"PATCH", nodetest.FlagPath("k"), `{"projectId":"p"}`, "projectId"},
				{"PATCH", nodetest.FlagPath("k"), `{"key":"other"}`, "key"},
				{"PATCH", nodetest.FlagPath("k"), `{"Name":"x"}`, "Name"},
				{"PATCH", nodetest.FlagPath("k", "/variations/", variation), `{"id":"x"}`, "id"},
				{"POST", inboxPath + "/send", `{"userId":"` + me.UserID + `","tenantId":"` + me.Tenant + `","title":"x","type":"x","read":true}`, "read"},
				{"POST", devicesPath, `{"deviceToken":"x","deviceType":"web","userId":"y"}`, "userId"},
				{"POST", "/auth/signup", `{"email":"z@example.com","password":"correct horse","role":"admin"}`, "role"},
				{"POST", "/api/v1/auth/signup", `{"email":"z@example.com","password":"correct horse","tenant_id":"x"}`, "tenant_id"},
			} {
				me.Call(c.method, c.path, c.body).Refused(422, c.field)
			}
			me.Call("POST", usersPath(me), `{"email":"a@example.com","role":"viewer","role":"admin"}`).Refused(400)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"a","name":"b"}`).Refused(400)
			me.Call("GET", nodetest.FlagPath("k"), nil).
				Want(200).
				Shows(map[string]any{"name": "k", "status": "active", "version": 2})
		},
	}.Run(t)
}
