package http_test

import (
	"slices"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/identity/firebase/emulator"
	"flagledger/commands/keep/directory"
)

// onFirebase starts a service with accounts in the Firebase emulator.
func onFirebase(t *testing.T) (*nodetest.Service, *emulator.Emulator) {
	t.Helper()
	e := emulator.Start(t)
	c := settings.Config{Environment: "development"}
	c.Firebase = settings.Firebase{
		ProjectID:    emulator.Project,
		APIKey:       "any",
		EmulatorHost: e.Host,
		CheckEvery:   250 * time.Millisecond,
	}
	return nodetest.Start(t, nodetest.Database(t), c, nodetest.Log(t)), e
}

func TestFirebase(t *testing.T) {
	t.Parallel()
	s, e := onFirebase(t)
	second := s.SecondNode()
	refused := func(c *nodetest.Client) func() bool {
		return func() bool { return c.Call("GET", "/api/v1/tenants", nil).Status == 401 }
	}
	for name, test := range map[string]func(t *testing.T, s *nodetest.Service, me *nodetest.Client){
		"people sign up, in, and go on with their sessions": func(t *testing.T, _ *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			nodetest.Same(t, "who signs in", account.signIn(me).user, account.user)
			withToken(me, account.token).Call("GET", "/api/v1/tenants", nil).Want(200)
			checkBootstrap(t, me.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).Want(200), account.email)
			body := me.Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).Want(200).Object()
			withToken(me, body["token"].(string)).Call("GET", "/api/v1/tenants", nil).Want(200)
			me.Call("POST", "/auth/signup", map[string]string{"email": account.email, "password": nodetest.Password}).Refused(409)
			me.Call("POST", "/auth/signin", map[string]string{"email": account.email, "password": "wrong horse"}).Refused(401)
			me.Call("POST", "/auth/signup", `{"email":"nobody","password":"1234567"}`).Refused(422, "email", "password")
			me.Call("POST", "/api/v1/auth/refresh", `{"refreshToken":"nonsense"}`).Refused(401)
			me.Call("POST", "/api/v1/auth/login", `{"idToken":"nonsense"}`).Refused(401)
		},
		"sign-in with a provider takes that provider's tokens alone": func(t *testing.T, _ *nodetest.Service, me *nodetest.Client) {
			tokens := map[string]string{}
			for _, name := range []string{"google", "github", "microsoft"} {
				tokens[name] = e.Federated(t, name+".com", nodetest.Address())
			}
			for path := range tokens {
				for name, token := range tokens {
					a := me.Call("POST", "/api/v1/auth/signin/"+path, map[string]string{"idToken": token, "providerName": path})
					if name == path {
						a.Want(200)
					} else {
						a.Refused(422, "idToken")
					}
				}
				me.Call("POST", "/api/v1/auth/signin/"+path, map[string]string{"idToken": tokens[path], "providerName": "password"}).Refused(422, "providerName")
			}
			for _, name := range []string{"google", "microsoft"} {
				checkLegacy(t, me.Call("POST", "/auth/"+name, map[string]string{"idToken": tokens[name]}).Want(200))
				me.Call("POST", "/auth/"+name, map[string]string{"idToken": tokens["github"]}).Refused(422, "idToken")
			}
			email := nodetest.Address()
			checkBootstrap(t, me.Call("POST", "/api/v1/auth/signup", map[string]string{"idToken": e.Federated(t, "google.com", email)}).Want(201), email)
		},
		"names of people are shown": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			owner := s.SignUp(nodetest.Address())
			email := nodetest.Address()
			token := e.Federated(t, "google.com", email)
			owner.Call("POST", "/api/v1/tenants/"+owner.Tenant+"/users", map[string]string{"email": email, "role": "developer"}).Want(201)
			data := checkBootstrap(t, me.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).Want(200), email)
			nodetest.Same(t, "tenants", len(data["tenants"].([]any)), 2) // Google has verified the address
			members := owner.Call("GET", "/api/v1/tenants/"+owner.Tenant+"/users", nil).Want(200).List()
			if !slices.Contains(nodetest.Column(members, "displayName"), any("Ada of google.com")) || !slices.Contains(nodetest.Column(members, "email"), any(email)) {
				t.Errorf("the members are %v", members)
			}
		},
		"logout ends the session on every node": func(t *testing.T, _ *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			there := &nodetest.Client{Service: second.In(t), Token: account.token}
			there.Call("GET", "/api/v1/tenants", nil).Want(200)
			withToken(me, account.token).Call("POST", "/api/v1/auth/logout", nil).Want(200)
			withToken(me, account.token).Call("GET", "/api/v1/tenants", nil).Refused(401)
			there.Service.Eventually("the other node refuses the token", refused(there))
			// Unlike Firebase, the emulator still refreshes after that; commands/identity/firebase tests a refused refresh.
			me.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).Refused(401)
		},
		"what ends at Firebase ends on every node": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			mine, there := withToken(me, account.token), &nodetest.Client{Service: second.In(t), Token: account.token}
			mine.Call("GET", "/api/v1/tenants", nil).Want(200)
			there.Call("GET", "/api/v1/tenants", nil).Want(200)
			began := time.Now().Unix()
			s.Eventually("the second is another", func() bool { return time.Now().Unix() > began })
			e.Update(t, account.user, map[string]any{"disableUser": true})
			s.Eventually("the token is refused", refused(mine))
			there.Service.Eventually("the other node refuses it", refused(there))
			me.Call("POST", "/auth/signin", map[string]string{"email": account.email, "password": nodetest.Password}).Refused(401)
		},
		"who is deleted at Firebase is erased": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			mine := withToken(me, account.token)
			mine.Call("GET", "/api/v1/tenants", nil).Want(200)
			e.Call(t, "POST", "/identitytoolkit.googleapis.com/v1/projects/"+emulator.Project+"/accounts:delete", map[string]string{"localId": account.user}, nil)
			s.Eventually("the token is refused", func() bool { return mine.Call("GET", "/api/v1/tenants", nil).Status == 403 })
			s.Eventually("the directory does not know them", func() bool { return !knows(t, s, account.user) })
		},
		"who is erased here is deleted at Firebase": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			erase(t, s, account.user)
			if knows(t, s, account.user) {
				t.Error("the directory knows them")
			}
			withToken(me, account.token).Call("GET", "/api/v1/tenants", nil).Refused(401)
			me.Call("POST", "/auth/signin", map[string]string{"email": account.email, "password": nodetest.Password}).Refused(401)
			me.Call("POST", "/auth/signup", map[string]string{"email": account.email, "password": nodetest.Password}).Want(201)
			erase(t, s, account.user)
		},
		"passwords are reset with Firebase's link, and changed": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			me.Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": nodetest.Address()}).Want(200)
			me.Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).Want(200)
			code := e.Code(t, account.email, "PASSWORD_RESET", "")
			reset := map[string]string{"token": code, "newPassword": "another horse"}
			began := time.Now().Unix()
			s.Eventually("the second is another", func() bool { return time.Now().Unix() > began })
			me.Call("POST", "/api/v1/auth/reset-password", reset).Want(200)
			me.Call("POST", "/api/v1/auth/reset-password", reset).Refused(422, "token")
			withToken(me, account.token).Call("GET", "/api/v1/tenants", nil).Refused(401)
			me.Call("POST", "/auth/signin", map[string]string{"email": account.email, "password": nodetest.Password}).Refused(401)
			in := me.Call("POST", "/auth/signin", map[string]string{"email": account.email, "password": "another horse"}).Want(200).Object()
			mine := withToken(me, in["token"].(string))
			update := func(current string) *nodetest.Answer {
				return mine.Call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": current, "newPassword": nodetest.Password})
			}
			update("wrong horse").Refused(422, "currentPassword")
			update("another horse").Want(200)
			me.Call("POST", "/auth/signin", map[string]string{"email": account.email, "password": nodetest.Password}).Want(200)
		},
		"addresses are verified with Firebase's link": func(t *testing.T, _ *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			if verified(t, account.token) {
				t.Error("the address is taken on trust")
			}
			me.Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": e.Code(t, account.email, "VERIFY_EMAIL", ""), "password": nodetest.Password}).Want(200)
			if !verified(t, account.signIn(me).token) {
				t.Error("the address is not verified")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			test(t, s, s.Anonymous())
		})
	}
}

// knows reports whether the directory knows a person.
func knows(t *testing.T, s *nodetest.Service, userID string) bool {
	t.Helper()
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	known, err := directory.New(pool, time.Now).Knows(t.Context(), userID)
	if err != nil {
		t.Fatal(err)
	}
	return known
}
