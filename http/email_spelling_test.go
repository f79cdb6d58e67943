package http_test

import (
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestAddressSpellingsNameOneAccount(t *testing.T) {
	nodetest.Cases{
		"blanks around it, capitals and decomposed letters make no other": func(_ *testing.T, me *nodetest.Client) {
			name := strings.ToLower(nodetest.Address()[:12])
			canonical := name + "@xn--ber-goa.example"
			spellings := []string{
				" " + name + "@\u00fcber.example ",
				name + "@\u00dcber.example",
				name + "@u\u0308ber.EXAMPLE\t",
				name + "@XN--BER-goa.example",
			}
			anyone := me.Service.Anonymous().Lenient() // the document allows no blanks around an address
			anyone.Call("POST", "/api/v1/auth/signup", map[string]string{"email": spellings[0], "password": nodetest.Password}).
				Want(201)
			for _, email := range spellings {
				anyone.Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).Want(200)
				anyone.Call("POST", "/api/v1/auth/signup", map[string]string{"email": email, "password": nodetest.Password + "x"}).
					Refused(409)
				anyone.Call("POST", "/auth/signup", map[string]string{"email": email, "password": nodetest.Password + "x"}).
					Refused(409)
				anyone.Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).Want(200)
				me.Call("PATCH", "/api/v1/tenants/"+me.Tenant, map[string]string{"primaryEmail": email}).
					Want(200).
					Shows(map[string]any{"primaryEmail": canonical})
			}
			me.Call("POST", usersPath(me), map[string]string{"email": spellings[1], "role": "viewer"}).
				Want(201).
				Shows(map[string]any{"email": canonical})
			for _, email := range spellings {
				me.Call("POST", usersPath(me), map[string]string{"email": email, "role": "viewer"}).Refused(409)
			}
		},
		"a password is the same, whichever way its letters are composed": func(_ *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			anyone := me.Service.Anonymous()
			anyone.Call("POST", "/api/v1/auth/signup", map[string]string{"email": email, "password": "gru\u0308ner Tee"}).
				Want(201)
			for _, password := range []string{"gr\u00fcner Tee", "gru\u0308ner Tee"} {
				anyone.Call("POST", "/auth/signin", map[string]string{"email": email, "password": password}).Want(200)
			}
			anyone.Call("POST", "/api/v1/auth/signup", map[string]string{"email": nodetest.Address(), "password": "u\u0308u\u0308u\u0308u\u0308"}).
				Refused(422, "password")
		},
	}.Run(t)
}
