package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/commands/identity/firebase/emulator"
	"flagledger/commands/keep/directory"
	"flagledger/migrations/pgtest"
)

// onFirebase is a service whose people are in the emulator of Firebase.
func onFirebase(t *testing.T) (*service, *emulator.Emulator) {
	t.Helper()
	e := emulator.Start(t)
	c := config{EventStoreURL: engineURL(t), Environment: "development"}
	c.Firebase = firebaseSettings{ProjectID: emulator.Project, APIKey: "any", EmulatorHost: e.Host, checkEvery: 50 * time.Millisecond}
	return serviceWith(t, pgtest.URL(t), c, testLog(t)), e
}

func TestFirebase(t *testing.T) {
	s, e := onFirebase(t)
	second := s.secondNode()
	refused := func(c *client) func() bool {
		return func() bool { return c.call("GET", "/api/v1/tenants", nil).status == 401 }
	}
	for name, test := range map[string]func(t *testing.T, s *service, me *client){
		"people sign up, in, and go on with their sessions": func(t *testing.T, _ *service, me *client) {
			account := me.account()
			same(t, "who signs in", account.signIn(me).user, account.user)
			me.with(account.token).call("GET", "/api/v1/tenants", nil).want(200)
			checkBootstrap(t, me.call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).want(200), account.email)
			body := me.call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).want(200).object()
			me.with(body["token"].(string)).call("GET", "/api/v1/tenants", nil).want(200)
			me.call("POST", "/auth/signup", map[string]string{"email": account.email, "password": password}).refused(409)
			me.call("POST", "/auth/signin", map[string]string{"email": account.email, "password": "wrong horse"}).refused(401)
			me.call("POST", "/auth/signup", `{"email":"nobody","password":"1234567"}`).refused(422, "email", "password")
			me.call("POST", "/api/v1/auth/refresh", `{"refreshToken":"nonsense"}`).refused(401)
			me.call("POST", "/api/v1/auth/login", `{"idToken":"nonsense"}`).refused(401)
		},
		"sign-in with a provider takes that provider's tokens alone": func(t *testing.T, _ *service, me *client) {
			tokens := map[string]string{}
			for _, name := range []string{"google", "github", "microsoft"} {
				tokens[name] = e.Federated(t, name+".com", address())
			}
			for path := range tokens {
				for name, token := range tokens {
					a := me.call("POST", "/api/v1/auth/signin/"+path, map[string]string{"idToken": token, "providerName": path})
					if name == path {
						a.want(200)
					} else {
						a.refused(422, "idToken")
					}
				}
				me.call("POST", "/api/v1/auth/signin/"+path, map[string]string{"idToken": tokens[path], "providerName": "password"}).refused(422, "providerName")
			}
			for _, name := range []string{"google", "microsoft"} {
				checkLegacy(t, me.call("POST", "/auth/"+name, map[string]string{"idToken": tokens[name]}).want(200))
				me.call("POST", "/auth/"+name, map[string]string{"idToken": tokens["github"]}).refused(422, "idToken")
			}
			email := address()
			checkBootstrap(t, me.call("POST", "/api/v1/auth/signup", map[string]string{"idToken": e.Federated(t, "google.com", email)}).want(201), email)
		},
		"names of people are shown": func(t *testing.T, s *service, me *client) {
			owner := s.signUp(address())
			email := address()
			token := e.Federated(t, "google.com", email)
			owner.call("POST", "/api/v1/tenants/"+owner.tenant+"/users", map[string]string{"email": email, "role": "developer"}).want(201)
			data := checkBootstrap(t, me.call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).want(200), email)
			same(t, "tenants", len(data["tenants"].([]any)), 2) // Google has verified the address
			members := owner.call("GET", "/api/v1/tenants/"+owner.tenant+"/users", nil).want(200).list()
			if !slices.Contains(column(members, "displayName"), any("Ada of google.com")) || !slices.Contains(column(members, "email"), any(email)) {
				t.Errorf("the members are %v", members)
			}
		},
		"logout ends the session on every node": func(t *testing.T, s *service, me *client) {
			account := me.account()
			there := &client{s: second.in(t), token: account.token}
			there.call("GET", "/api/v1/tenants", nil).want(200)
			me.with(account.token).call("POST", "/api/v1/auth/logout", nil).want(200)
			me.with(account.token).call("GET", "/api/v1/tenants", nil).refused(401)
			there.s.eventually("the other node refuses the token", refused(there))
			me.call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).refused(401)
			me.call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).refused(401)
		},
		"what ends at Firebase ends on every node": func(t *testing.T, s *service, me *client) {
			account := me.account()
			mine, there := me.with(account.token), &client{s: second.in(t), token: account.token}
			mine.call("GET", "/api/v1/tenants", nil).want(200)
			there.call("GET", "/api/v1/tenants", nil).want(200)
			began := time.Now().Unix()
			s.eventually("the second is another", func() bool { return time.Now().Unix() > began })
			e.Update(t, account.user, map[string]any{"disableUser": true})
			s.eventually("the token is refused", refused(mine))
			there.s.eventually("the other node refuses it", refused(there))
			me.call("POST", "/auth/signin", map[string]string{"email": account.email, "password": password}).refused(401)
		},
		"who is deleted at Firebase is erased": func(t *testing.T, s *service, me *client) {
			account := me.account()
			mine := me.with(account.token)
			mine.call("GET", "/api/v1/tenants", nil).want(200)
			e.Call(t, "POST", "/identitytoolkit.googleapis.com/v1/projects/"+emulator.Project+"/accounts:delete", map[string]string{"localId": account.user}, nil)
			s.eventually("the token is refused", func() bool { return mine.call("GET", "/api/v1/tenants", nil).status == 403 })
			s.eventually("the directory does not know him", func() bool { return !knows(t, s, account.user) })
		},
		"who is erased here is deleted at Firebase": func(t *testing.T, s *service, me *client) {
			account := me.account()
			erase(t, s, account.user)
			if knows(t, s, account.user) {
				t.Error("the directory knows him")
			}
			me.with(account.token).call("GET", "/api/v1/tenants", nil).refused(401)
			me.call("POST", "/auth/signin", map[string]string{"email": account.email, "password": password}).refused(401)
			me.call("POST", "/auth/signup", map[string]string{"email": account.email, "password": password}).want(201)
			erase(t, s, account.user)
		},
		"passwords are reset with Firebase's link, and changed": func(t *testing.T, s *service, me *client) {
			account := me.account()
			me.call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": address()}).want(200)
			me.call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).want(200)
			code := e.Code(t, account.email, "PASSWORD_RESET", "")
			reset := map[string]string{"token": code, "newPassword": "another horse"}
			began := time.Now().Unix()
			s.eventually("the second is another", func() bool { return time.Now().Unix() > began })
			me.call("POST", "/api/v1/auth/reset-password", reset).want(200)
			me.call("POST", "/api/v1/auth/reset-password", reset).refused(422, "token")
			me.with(account.token).call("GET", "/api/v1/tenants", nil).refused(401)
			me.call("POST", "/auth/signin", map[string]string{"email": account.email, "password": password}).refused(401)
			in := me.call("POST", "/auth/signin", map[string]string{"email": account.email, "password": "another horse"}).want(200).object()
			mine := me.with(in["token"].(string))
			update := func(current string) *answer {
				return mine.call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": current, "newPassword": password})
			}
			update("wrong horse").refused(422, "currentPassword")
			update("another horse").want(200)
			me.call("POST", "/auth/signin", map[string]string{"email": account.email, "password": password}).want(200)
		},
		"addresses are verified with Firebase's link": func(t *testing.T, _ *service, me *client) {
			account := me.account()
			if verified(t, account.token) {
				t.Error("the address is taken on trust")
			}
			me.call("POST", "/api/v1/auth/verify-email", map[string]string{"token": e.Code(t, account.email, "VERIFY_EMAIL", ""), "password": password}).want(200)
			if !verified(t, account.signIn(me).token) {
				t.Error("the address is not verified")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			test(t, s, s.anonymous())
		})
	}
}

// knows tells whether the directory knows somebody.
func knows(t *testing.T, s *service, userID string) bool {
	t.Helper()
	pool, err := openPool(t.Context(), s.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	known, err := directory.New(pool).Knows(t.Context(), userID)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func TestProductionRefusesTheEmulator(t *testing.T) {
	t.Parallel()
	for _, environment := range []string{"development", "production"} {
		s := firebaseSettings{ProjectID: "flags-1234", EmulatorHost: "127.0.0.1:9099"}
		if err := s.check(environment); (err != nil) != (environment == "production") || err != nil && !strings.Contains(err.Error(), "FIREBASE_AUTH_EMULATOR_HOST") {
			t.Errorf("%s: %v", environment, err)
		}
	}
}
