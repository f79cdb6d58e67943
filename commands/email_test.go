package commands

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAddresses(t *testing.T) {
	long := strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"kim@example.com":                        "kim@example.com",
		"Kim.O'Hara+x@Example.COM":               "Kim.O'Hara+x@example.com",
		"kim@bücher.example":                     "kim@xn--bcher-kva.example",
		"kim@XN--BCHER-KVA.example":              "kim@xn--bcher-kva.example",
		"kim@straße.example":                     "kim@xn--strae-oqa.example", // another domain than strasse.example
		"kim@ex\u0430mple.com":                   "kim@xn--exmple-4nf.com",    // with a letter of the Cyrillic alphabet
		"kim@localhost":                          "kim@localhost",
		long + "@example.com":                    long + "@example.com",
		"\u212Aim@example.com":                   "", // folds to k
		"k\u0130m@example.com":                   "", // folds to i
		"k\u0131m@example.com":                   "",
		"\uff4b\uff49\uff4d@example.com":         "", // full-width letters
		"kim@\uff45xample.com":                   "",
		"\u212A@\u212A.com":                      "",
		"kim@\u212A.com":                         "",
		"kim@example\u3002com":                   "", // an ideographic full stop
		"kim@BÜCHER.example":                     "kim@xn--bcher-kva.example",
		"kim@bu\u0308cher.example":               "kim@xn--bcher-kva.example",
		"kim@BU\u0308CHER.example":               "kim@xn--bcher-kva.example",
		"kim@\u0130x.example":                    "", // a capital of Turkish, whose small letter is another one's, too
		"kim@exam\u00adple.com":                  "", // a soft hyphen
		"kim@xn--example-.com":                   "", // punycode of ASCII alone
		"kim@xn--99999999999.com":                "",
		"kim@example.com.":                       "",
		"kim@example..com":                       "",
		"kim@.example.com":                       "",
		"kim@-example.com":                       "",
		"kim@exam_ple.com":                       "",
		"kim@[127.0.0.1]":                        "",
		"kim@" + long + ".com":                   "",
		"kim@" + strings.Repeat("a.", 130):       "",
		"kim@" + strings.Repeat("a.", 130) + "a": "",
		long + "a@example.com":                   "",
		`"kim"@example.com`:                      "",
		"Kim <kim@example.com>":                  "",
		"kim@example.com@example.com":            "",
		".kim@example.com":                       "",
		"kim.@example.com":                       "",
		"k..im@example.com":                      "",
		"k im@example.com":                       "",
		" kim@example.com":                       "kim@example.com",
		"\tkim@example.com\n":                    "kim@example.com",
		"kim@ example.com":                       "",
		"kim\x00@example.com":                    "",
		"kim@exa\x00mple.com":                    "",
		"kim@exa\xffmple.com":                    "",
		"@example.com":                           "",
		"kim@":                                   "",
		"kim":                                    "",
		"":                                       "",
	} {
		got, ok := ParseEmail(text)
		if got != want || ok != (want != "") {
			t.Errorf("%q is %q (%v), want %q", text, got, ok, want)
		}
	}
}

// The canonical form is ASCII and its own canonical form. Addresses that differ in more than ASCII case stay different.
func TestTheCanonicalFormOfAnAddress(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[A-Za-z.+_-]{1,6}@[A-Za-z.\-]{1,8}`), rapid.StringMatching(`\PC{1,4}@\PC{1,4}`)).
			Draw(t, "text")
		address, ok := ParseEmail(text)
		if !ok {
			return
		}
		if same, ok := ParseEmail(address); !ok || same != address || !isASCII(address) {
			t.Errorf("the canonical form %q has another: %q", address, same)
		}
		if EmailKey(strings.ToUpper(address)) != EmailKey(text) {
			t.Errorf("%q is another in upper case", address)
		}
	})
}
