package http_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

func TestTheLog(t *testing.T) {
	t.Parallel()
	book := &nodetest.LogBook{}
	s := nodetest.WithLog(t, nodetest.Database(t), book.Logger())

	t.Run("each request is logged with its id, and so is all that it causes", func(t *testing.T) {
		id := uuid.NewString()
		s.In(t).Anonymous().Call("GET", "/api/v1/flags/some-flag", nil, "X-Request-ID", id).Refused(401)
		found := 0
		for line := range strings.Lines(book.String()) {
			var entry map[string]any
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Errorf("no JSON: %s", line)
			}
			if entry["request"] != id {
				continue
			}
			found++
			nodetest.Same(t, "the entry", []any{entry["msg"], entry["method"], entry["path"], entry["status"]},
				[]any{"request", "GET", "/api/v1/flags/some-flag", 401})
		}
		nodetest.Same(t, "entries", found, 1)
	})

	t.Run("no secret is logged", func(t *testing.T) {
		const secret, wrong = "pass-word-that-nobody-may-see", "another-pass-word-that-nobody-may-see"
		s := s.In(t)
		nobody := s.Anonymous()
		email := nodetest.Address()
		secrets := []string{secret, wrong}
		keep := func(a *nodetest.Answer) (token string) {
			body := a.Want(a.Status).Object()
			for _, name := range []string{"token", "refreshToken"} {
				if text, ok := body[name].(string); ok {
					secrets = append(secrets, text)
				}
			}
			token, _ = body["token"].(string)
			return token
		}
		credentials := map[string]string{"email": email, "password": secret}
		token := keep(nobody.Call("POST", "/auth/signup", credentials).Want(201))
		refresh := secrets[len(secrets)-1]
		nobody.Call("POST", "/auth/signup", credentials).Refused(409)
		nobody.Call("POST", "/api/v1/auth/signup", map[string]string{"email": nodetest.Address(), "password": secret}).
			Want(201)
		nobody.Call("POST", "/api/v1/auth/signup", map[string]string{"email": secret, "password": wrong}).
			Refused(422, "email")
		nobody.Call("POST", "/auth/signin", map[string]string{"email": email, "password": wrong}).Refused(401)
		nobody.Call("POST", "/auth/signin", map[string]any{"email": email, "password": []string{wrong}}).
			Refused(422, "password")
		nobody.Call("POST", "/auth/signin", `{"email":"`+email+`","password":"`+secret+`"`).Refused(400)
		nobody.Call("POST", "/auth/signin", map[string]string{"email": email, secret: wrong}).Refused(422, secret, "password")
		keep(nobody.Call("POST", "/auth/signin", credentials).Want(200))
		nobody.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).Want(200)
		nobody.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": token + "x"}).Refused(401)
		me := &nodetest.Client{Service: s, Token: token}
		me.Call("GET", "/api/v1/tenants", nil).Want(200)
		me.Call("GET", "/api/v1/tenants?access_token="+token, nil).Refused(422, "access_token")
		nobody.Call("GET", "/api/v1/tenants", nil, "Authorization", "Bearer "+token+"x").Refused(401)
		nobody.Call("GET", "/api/v1/tenants", nil, "Authorization", token).Refused(401)
		keep(nobody.Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": refresh}).Want(200))
		nobody.Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": refresh}).Refused(401)
		me.Call("GET", "/api/v1/tenants", nil).Refused(401)
		other := &nodetest.Client{Service: s, Token: keep(nobody.Call("POST", "/auth/signin", credentials).Want(200))}
		other.Call("POST", "/api/v1/auth/logout", nil).Want(200)
		other.Call("GET", "/api/v1/tenants", nil).Refused(401)

		text := book.String()
		if !strings.Contains(text, "/api/v1/auth/refresh") {
			t.Errorf("the calls are not in the log")
		}
		if len(secrets) != 10 {
			t.Errorf("there are %d secrets", len(secrets))
		}
		for _, secret := range secrets {
			parts := []string{secret}
			if strings.Count(secret, ".") == 2 {
				parts = strings.Split(secret, ".")[1:] // of a token, the header is no secret
			}
			for _, part := range parts {
				if strings.Contains(text, part) {
					t.Errorf("the log holds a secret: %s", part)
				}
			}
		}
	})

	t.Run("no device token and no word of a notification is logged", func(t *testing.T) {
		const path, token, word = "/api/v1/notifications", "device:token-that-nobody-may-see", "word-that-nobody-may-see"
		s := s.In(t)
		me := s.SignUp(nodetest.Address())
		me.Call("POST", path+"/device-tokens", map[string]string{"deviceToken": token, "deviceType": "web"}).Want(201)
		me.Call("POST", path+"/send", map[string]any{"userId": me.UserID, "tenantId": me.Tenant, "title": word, "body": word, "type": "x", "data": map[string]string{"x": word}}).
			Want(201)
		me.Call("POST", path+"/send", map[string]string{"userId": word, "tenantId": me.Tenant, "title": word, "type": "x"}).
			Refused(404)
		s.Eventually("the push is logged", func() bool { return strings.Contains(book.String(), "was not pushed") })
		s.Anonymous().Call("DELETE", path+"/device-tokens/"+token, nil).Refused(401)
		me.Call("DELETE", path+"/device-tokens/"+token, nil).Want(204)
		me.Call("DELETE", path+"/device-tokens/"+strings.ReplaceAll(token, ":", "%3A"), nil).Refused(404)
		// Paths without a route, and paths that match an unexpected one.
		for _, wrong := range []string{
			"/api/notifications/device-tokens/", "/api/v1//notifications/device-tokens/", "/api/v1/notifications/device%2Dtokens/", "/api/v1/notifications/device-tokens%2F",
			"/api/v1/notifications/device-tokens%252F", "/api/v1/notifications/devices/", "/api/v1/device-tokens/", "/reset-password/", "/sandbox/",
		} {
			for _, method := range []string{"GET", "DELETE"} {
				for _, sent := range []string{token, strings.TrimPrefix(token, "device:")} {
					me.Call(method, wrong+sent, nil)
				}
			}
		}
		me.Call("PUT", path+"/device-tokens/"+token, nil).Refused(405)
		me.Call("DELETE", path+"/device-tokens/"+token, nil, "X-Change-Reason", strings.Repeat("x", 501)).
			Refused(422, "X-Change-Reason")
		text := book.String()
		if !strings.Contains(text, path+"/device-tokens/{token}") {
			t.Errorf("the calls are not in the log")
		}
		for _, secret := range []string{token, strings.TrimPrefix(token, "device:"), word} {
			if strings.Contains(text, secret) {
				t.Errorf("the log holds %s", secret)
			}
		}
	})

	t.Run("no machine's secret is logged", func(t *testing.T) {
		const path, form, guess = "/api/v1/oauth/token", "application/x-www-form-urlencoded", "a-guess-that-nobody-may-see"
		s := s.In(t)
		me := s.SignUp(nodetest.Address())
		id, first := me.OAuthClient("x", "flags:read", "flags:write")
		second := me.Call("POST", clients+"/"+id+"/rotate", nil).Want(200).Object()["clientSecret"].(string)
		machine := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, first)...)))
		basic := base64.StdEncoding.EncodeToString([]byte(id + ":" + second))
		other := accessToken(
			s.Anonymous().
				Call("POST", path, "grant_type=client_credentials", "Content-Type", form, "Authorization", "Basic "+basic),
		)
		machine.CreateFlag("k", nil)
		machine.Call("POST", "/api/v1/projects", `{"name":"x"}`).Refused(403)
		denied(me.Trade(nodetest.Credentials(id, guess)...), 401, "invalid_client")
		denied(me.Trade(nodetest.Credentials(guess, second)...), 401, "invalid_client")
		denied(me.Trade(nodetest.Credentials(id, second, "scope", guess)...), 400, "invalid_scope")
		denied(me.Trade(guess, second), 400, "invalid_request")
		denied(s.Anonymous().Call("POST", path, `{"client_secret":"`+second+`"}`), 415, "invalid_request")
		denied(
			s.Anonymous().
				Call("POST", path+"?client_secret="+second, "grant_type=client_credentials&client_id="+id, "Content-Type", form),
			400,
			"invalid_request",
		)
		me.Call("DELETE", clients+"/"+id, nil).Want(204)
		machine.Call("GET", "/api/v1/flags", nil).Refused(401)

		text := book.String()
		if !strings.Contains(text, path) {
			t.Errorf("the calls are not in the log")
		}
		for _, secret := range []string{first, second, guess, basic} {
			if strings.Contains(text, secret) {
				t.Errorf("the log holds a secret: %s", secret)
			}
		}
		for _, token := range []string{machine.Token, other} {
			for _, part := range strings.Split(token, ".")[1:] {
				if strings.Contains(text, part) {
					t.Errorf("the log holds a part of a token: %s", part)
				}
			}
		}
	})
}
