package people

import (
	"testing"
)

func TestClaimsWithAnAddressThatHasNoCanonicalForm(t *testing.T) {
	for email, want := range map[string]Claims{
		"Kim@Example.com":      {Email: "Kim@example.com", EmailVerified: true},
		"\u212Aim@example.com": {Email: "\u212Aim@example.com"},
		"":                     {},
	} {
		if got := (Claims{Email: email, EmailVerified: true}).Canonical(); got != want {
			t.Errorf("%q: %+v", email, got)
		}
	}
	list := NewSuperUsers([]string{"kim@example.com", "nonsense"})
	for email, want := range map[string]bool{"KIM@example.COM": true, "\u212Aim@example.com": false, "k\u0130m@example.com": false, "": false, "nonsense": false} {
		if list.Has(email) != want {
			t.Errorf("%q is on the list: %v", email, !want)
		}
	}
}
