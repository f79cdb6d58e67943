package http_test

import (
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// lookAlikes are addresses that fold to a given address, look like it, or mean it to some programs, but are different
// addresses.
func lookAlikes(local, domain string) []string {
	fold := strings.NewReplacer("k", "\u212A", "i", "\u0130", "s", "\u017F")
	wide := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r >= '!' && r <= '~' && r != '@' {
				return r - '!' + '\uff01'
			}
			return r
		}, text)
	}
	return []string{
		fold.Replace(local) + "@" + domain,
		strings.Replace(local, "k", "\u212A", 1) + "@" + domain,
		strings.Replace(local, "i", "\u0130", 1) + "@" + domain,
		strings.Replace(local, "i", "\u0131", 1) + "@" + domain,
		wide(local) + "@" + domain,
		local + "@" + wide(domain),
		local + "@" + strings.Replace(domain, ".", "\u3002", 1),
		local + "@" + strings.Replace(domain, "a", "\u0430", 1),
		local + "@" + strings.Replace(domain, "m", "\uff4d", 1),
		local + "\u200b@" + domain,
		"\u00ad" + local + "@" + domain,
		`"` + local + `"@` + domain,
		local + "@" + domain + ".",
		local + "+@" + domain,
		local + "@xn--" + domain,
		local + "\x00@" + domain,
		local + "@" + domain + "\u0000",
	}
}

// A person who signs up with a look-alike of another's address gets nothing meant for that address: no platform role,
// membership, invitation or account.
func TestLookAlikeAddressesGetNothing(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", SuperUsers: []string{"root@example.com", "kim@example.com"},
	}, nodetest.Log(t))
	root := s.SignUp("root@example.com")
	for _, invited := range []string{"kim@example.com", "sisik@example.com"} {
		root.Call("POST", usersPath(root), map[string]string{"email": invited, "role": "admin"}).Want(201)
		root.Call("POST", invitationsPath, map[string]string{"email": invited, "role": "admin"}).Want(201)
	}
	signedUp := 0
	for _, local := range []string{"kim", "sisik"} {
		for _, email := range lookAlikes(local, "example.com") {
			for _, path := range []string{"/auth/signup", "/api/v1/auth/signup"} {
				a := s.Anonymous().Call("POST", path, map[string]string{"email": email, "password": nodetest.Password})
				if a.Status == 422 || a.Status == 409 || a.Status == 400 {
					continue
				}
				signedUp++
				token := s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).Want(200).Object()["token"].(string)
				they := &nodetest.Client{Service: s, Token: token}
				nodetest.Same(t, email+": tenants", len(they.Call("GET", "/api/v1/tenants", nil).Want(200).List()), 1)
				they.Call("GET", usersOfPlatform, nil).Refused(403)
				they.Call("POST", invitationsPath+"/accept", nil).Refused(404)
			}
		}
	}
	if signedUp == 0 {
		t.Error("nobody could sign up with an address of their own")
	}
	for _, email := range lookAlikes("kim", "example.com") {
		if email == "kim+@example.com" || strings.Contains(email, "\u0430") { // separate addresses
			continue
		}
		body := map[string]string{"email": email, "role": "admin"}
		for path, field := range map[string]string{usersPath(root): "email", invitationsPath: "email", "/api/v1/tenants": "primaryEmail"} {
			a := root.Call("POST", path,
				map[bool]map[string]string{true: body, false: {"name": "n", "primaryEmail": email}}[field == "email"])
			if strings.Contains(email, "\x00") {
				a.Refused(400)
			} else {
				a.Refused(422, field)
			}
		}
	}
	kim := s.SignUp("KIM@Example.Com")
	nodetest.Same(t, "tenants of the person who has the address",
		len(kim.Call("GET", "/api/v1/tenants", nil).Want(200).List()), 2)
	kim.Call("GET", usersOfPlatform, nil).Want(200)
	s.Anonymous().
		Call("POST", "/auth/signup", map[string]string{"email": "kim@example.com", "password": nodetest.Password}).
		Refused(409)
	s.Anonymous().
		Call("POST", "/auth/signin", map[string]string{"email": "kIm@EXAMPLE.com", "password": nodetest.Password}).
		Want(200)
	for range 7 { // guesses count for the address in any spelling
		for _, email := range []string{"kim@example.com", " KIM@example.COM"} {
			s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": "wrong horse"}).Refused(401)
		}
		s.Anonymous().
			Call("POST", "/auth/signup", map[string]string{"email": "kIM@example.com", "password": "wrong horse"}).
			Refused(409)
	}
	s.Anonymous().
		Call("POST", "/auth/signin", map[string]string{"email": "Kim@example.com", "password": nodetest.Password}).
		Refused(429)
}

// An address that an earlier release stored in another form matches nothing, even if it was verified.
func TestAnAddressThatWasStoredInAnotherForm(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", SuperUsers: []string{"root@example.com", "kim@example.com"},
	}, nodetest.Log(t))
	root := s.SignUp("root@example.com")
	for _, stored := range []string{"\u212Aim@example.com", "k\u0130m@example.com", "kim@ex\uff41mple.com", `"kim"@example.com`} {
		old := newAccount(root)
		sql(s, `update keep.people set email = $2, email_verified = true where user_id = $1`, old.user, stored)
		root.Call("POST", usersPath(root), map[string]string{"email": "kim@example.com", "role": "admin"})
		session := s.Anonymous().
			Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": old.refresh}).
			Want(200).
			Object()
		they := withToken(root, session["token"].(string))
		they.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": they.Token}).Want(200)
		nodetest.Same(t, stored+": tenants", len(they.Call("GET", "/api/v1/tenants", nil).Want(200).List()), 1)
		they.Call("GET", usersOfPlatform, nil).Refused(403)
		root.Call("PATCH", usersOfPlatform+"/"+old.user+"/role", `{"role":"super_user"}`).Refused(422, "role")
		s.Anonymous().
			Call("POST", "/auth/signin", map[string]string{"email": "kim@example.com", "password": nodetest.Password}).
			Refused(401)
	}
	nodetest.Same(t, "the address is still waited for",
		root.Call("GET", usersPath(root), nil).Want(200).List()[1]["pending"], true)
}
