package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

func TestCacheHeadersKeepAnswersPrivate(t *testing.T) {
	nodetest.Cases{
		"nobody stores an answer that may hold a token or a secret": func(t *testing.T, me *nodetest.Client) {
			nobody := me.Service.Anonymous()
			email := nodetest.Address()
			credentials := map[string]string{"email": email, "password": nodetest.Password}
			signUp := nobody.Call("POST", "/auth/signup", credentials).Want(201)
			refreshToken := map[string]any{"refreshToken": signUp.Object()["refreshToken"]}
			newClient := func() *nodetest.Answer {
				const client = `{"name":"m","scopes":["flags:read"]}`
				return me.Call("POST", "/api/v1/oauth/clients", client, "Idempotency-Key", "1").Want(201)
			}
			client := newClient()
			rotate := "/api/v1/oauth/clients/" + client.Object()["clientId"].(string) + "/rotate"
			for _, a := range []*nodetest.Answer{
				signUp, client, newClient(), me.Call("POST", rotate, nil).Want(200),
				nobody.Call("POST", "/auth/signin", credentials).Want(200),
				nobody.Call("POST", "/auth/signin", `{}`).Refused(422, "email", "password"),
				nobody.Call("POST", "/api/v1/auth/refresh", refreshToken).Want(200),
				nobody.Call("POST", "/api/v1/auth/refresh", `{"refreshToken":"x"}`).Refused(401),
				me.Trade("grant_type", "client_credentials", "client_id", "x", "client_secret", "x").Want(401),
				me.Trade("grant_type", "x").Want(400), me.Call("POST", "/api/v1/oauth/token", `{}`).Want(415),
			} {
				nodetest.Same(t, "Cache-Control of "+a.Call, a.Header.Get("Cache-Control"), "no-store")
			}
		},
		"a read is stored for the caller alone, and asked for each time": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, a := range []*nodetest.Answer{
				me.Call("GET", nodetest.FlagPath("k"), nil).Want(200), me.Call("HEAD", nodetest.FlagPath("k"), nil).Want(200),
				me.Call("GET", "/api/v1/flags", nil).Want(200), me.Call("GET", nodetest.FlagPath("none"), nil).Refused(404),
				me.Service.Anonymous().Call("GET", nodetest.FlagPath("k"), nil).Refused(401),
			} {
				nodetest.Same(t, "the headers of "+a.Call, []string{a.Header.Get("Cache-Control"), a.Header.Get("Vary")},
					[]string{"private, no-cache", "X-Tenant-ID, X-Environment, Authorization, X-API-Key"})
			}
		},
		"browsers may call by http in development": func(t *testing.T, me *nodetest.Client) {
			health := me.Call("GET", "/health", nil)
			nodetest.Same(t, "the header", health.Header.Get("Strict-Transport-Security"), "")
		},
	}.Run(t)
}

func TestBrowsersCallProductionByHTTPSAlone(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "production", PublicURL: "https://flags.example.com",
	}, nodetest.Log(t))
	for _, path := range []string{"/health", "/none", "/docs", "/api/v1/flags"} {
		a := s.Anonymous().Call("GET", path, nil)
		nodetest.Same(t, "the header of "+path, a.Header.Get("Strict-Transport-Security"), "max-age=31536000")
	}
}
