package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"flagledger/migrations/pgtest"
)

// logBook keeps what is logged.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *logBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logBook) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestTheLog(t *testing.T) {
	t.Parallel()
	book := &logBook{}
	s := serviceLogging(t, pgtest.URL(t), book.logger())

	t.Run("each request is logged with its id, and so is all that it causes", func(t *testing.T) {
		id := uuid.NewString()
		s.in(t).anonymous().call("GET", "/api/v1/flags/some-flag", nil, "X-Request-ID", id).refused(401)
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
			same(t, "the entry", []any{entry["msg"], entry["method"], entry["path"], entry["status"]}, []any{"request", "GET", "/api/v1/flags/some-flag", 401})
		}
		same(t, "entries", found, 1)
	})

	t.Run("no secret is logged", func(t *testing.T) {
		const secret, wrong = "pass-word-that-nobody-may-see", "another-pass-word-that-nobody-may-see"
		s := s.in(t)
		nobody := s.anonymous()
		email := address()
		secrets := []string{secret, wrong}
		keep := func(a *answer) (token string) {
			body := a.want(a.status).object()
			for _, name := range []string{"token", "refreshToken"} {
				if text, ok := body[name].(string); ok {
					secrets = append(secrets, text)
				}
			}
			token, _ = body["token"].(string)
			return token
		}
		credentials := map[string]string{"email": email, "password": secret}
		token := keep(nobody.call("POST", "/auth/signup", credentials).want(201))
		refresh := secrets[len(secrets)-1]
		nobody.call("POST", "/auth/signup", credentials).refused(409)
		nobody.call("POST", "/api/v1/auth/signup", map[string]string{"email": address(), "password": secret}).want(201)
		nobody.call("POST", "/api/v1/auth/signup", map[string]string{"email": secret, "password": wrong}).refused(422, "email")
		nobody.call("POST", "/auth/signin", map[string]string{"email": email, "password": wrong}).refused(401)
		nobody.call("POST", "/auth/signin", map[string]any{"email": email, "password": []string{wrong}}).refused(422, "password")
		nobody.call("POST", "/auth/signin", `{"email":"`+email+`","password":"`+secret+`"`).refused(400)
		nobody.call("POST", "/auth/signin", map[string]string{"email": email, secret: wrong}).refused(422, secret, "password")
		keep(nobody.call("POST", "/auth/signin", credentials).want(200))
		nobody.call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).want(200)
		nobody.call("POST", "/api/v1/auth/login", map[string]string{"idToken": token + "x"}).refused(401)
		me := &client{s: s, token: token}
		me.call("GET", "/api/v1/tenants", nil).want(200)
		me.call("GET", "/api/v1/tenants?access_token="+token, nil).refused(422, "access_token")
		nobody.call("GET", "/api/v1/tenants", nil, "Authorization", "Bearer "+token+"x").refused(401)
		nobody.call("GET", "/api/v1/tenants", nil, "Authorization", token).refused(401)
		keep(nobody.call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": refresh}).want(200))
		nobody.call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": refresh}).refused(401)
		me.call("GET", "/api/v1/tenants", nil).refused(401)
		other := &client{s: s, token: keep(nobody.call("POST", "/auth/signin", credentials).want(200))}
		other.call("POST", "/api/v1/auth/logout", nil).want(200)
		other.call("GET", "/api/v1/tenants", nil).refused(401)

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

	t.Run("no machine's secret is logged", func(t *testing.T) {
		const path, form, guess = "/api/v1/oauth/token", "application/x-www-form-urlencoded", "a-guess-that-nobody-may-see"
		s := s.in(t)
		me := s.signUp(address())
		id, first := me.oauthClient("x", "flags:read", "flags:write")
		second := me.call("POST", clients+"/"+id+"/rotate", nil).want(200).object()["clientSecret"].(string)
		machine := me.withToken(me.trade(credentials(id, first)...).token())
		basic := base64.StdEncoding.EncodeToString([]byte(id + ":" + second))
		other := s.anonymous().call("POST", path, "grant_type=client_credentials", "Content-Type", form, "Authorization", "Basic "+basic).token()
		machine.createFlag("k", nil)
		machine.call("POST", "/api/v1/projects", `{"name":"x"}`).refused(403)
		me.trade(credentials(id, guess)...).denied(401, "invalid_client")
		me.trade(credentials(guess, second)...).denied(401, "invalid_client")
		me.trade(credentials(id, second, "scope", guess)...).denied(400, "invalid_scope")
		me.trade(guess, second).denied(400, "invalid_request")
		s.anonymous().call("POST", path, `{"client_secret":"`+second+`"}`).denied(415, "invalid_request")
		s.anonymous().call("POST", path+"?client_secret="+second, "grant_type=client_credentials&client_id="+id, "Content-Type", form).denied(400, "invalid_request")
		me.call("DELETE", clients+"/"+id, nil).want(204)
		machine.call("GET", "/api/v1/flags", nil).refused(401)

		text := book.String()
		if !strings.Contains(text, path) {
			t.Errorf("the calls are not in the log")
		}
		for _, secret := range []string{first, second, guess, basic} {
			if strings.Contains(text, secret) {
				t.Errorf("the log holds a secret: %s", secret)
			}
		}
		for _, token := range []string{machine.token, other} {
			for _, part := range strings.Split(token, ".")[1:] {
				if strings.Contains(text, part) {
					t.Errorf("the log holds a part of a token: %s", part)
				}
			}
		}
	})
}
