package mail

import (
	"strings"
	"testing"

	"flagledger/commands/notify"
	"flagledger/events"
	"flagledger/events/state"
)

// Names in mails are unchecked input, and must not become links.
func TestNamesInMailsHoldNoLinks(t *testing.T) {
	for name, want := range map[string]string{
		"Acme Inc.":                       "Acme Inc.",
		"Größer & Söhne e.V.":             "Größer & Söhne e.V.",
		"U.S. Robots, v2.0 (AC/DC)":       "U.S. Robots, v2.0 (AC/DC)",
		"株式会社":                            "株式会社",
		"a, b: c; \"d\"":                  "a, b: c; \"d\"",
		"Team\r\nBcc: x":                  "Team Bcc: x",
		"tab\tand\u2028line\u0085\u00a0x": "tab and line x",
		"in\u200bvis\u202eible\ufeff":     "invisible",
		"Account locked! Visit https://evil.example/login now": "Account locked! Visit … now",
		"HTTPS://EVIL":                        "…",
		"evil.com":                            "…",
		"(evil.com)":                          "…",
		"see:evil.com/x":                      "…",
		"www.evil":                            "…",
		"evil\u200b.\u200bcom":                "…",
		"evil。com":                            "…",
		"ｅｖｉｌ．ｃｏｍ":                            "…",
		"http\uff1a//evil":                    "…",
		"bücher.example":                      "…",
		"evil.xn--p1ai":                       "…",
		"call 192.0.2.1 now":                  "call … now",
		"ada@example.com":                     "…",
		"mailto:ada tel:+49123":               "… …",
		"javascript:alert(1)":                 "…",
		`\\host\share`:                        "…",
		"evil.com evil.org":                   "… …",
		"evil\u2024com/login":                 "…",
		"evil\ufe52com/login":                 "…",
		"evil.c\u034fom/login":                "…",
		"evil.c\u3164om":                      "…",
		"evil.\u1160com":                      "…",
		"//evil":                              "…",
		"evil[.]com":                          "…",
		"evil(.)com":                          "…",
		"हिन्दी.com":                          "…",
		"कंपनी.भारत":                          "…",
		"ไปที่.ไทย":                           "…",
		"evilx\u0301.com":                     "…",
		"i❤.ws":                               "…",
		"💩.la/x":                              "…",
		"हिन्दी टीम":                          "हिन्दी टीम",
		"ASP.NET (.NET), C++. Done":           "… (.NET), C++. Done",
		"CALL 1\u2011800\u2011555\u20110100":  "CALL …",
		"CALL 1–800–555–0100":                 "CALL …",
		"CALL 1·800·555·0100":                 "CALL …",
		"CALL ٠١٨٠٠٥٥٥٠١٠٠":                   "CALL …",
		"24/7, 9 to 5, 1st of 2026":           "24/7, 9 to 5, 1st of 2026",
		"CALL +1-800-555-0100 now":            "CALL … now",
		"CALL +1 (800) 555 0100 now":          "CALL … now",
		"0x7f.1":                              "…",
		"2130706433":                          "…",
		"Acme 2026 v12.3, room 104":           "Acme 2026 v12.3, room 104",
		strings.Repeat("x", 70):               strings.Repeat("x", 60) + "…",
		strings.Repeat("x ", 28) + "evil.com": strings.TrimSpace(strings.Repeat("x ", 28)) + " …",
	} {
		if got := shown(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}

func TestSubjectsAreFixed(t *testing.T) {
	const name = "Account locked! Visit https://evil.example"
	for _, m := range []notify.Mail{
		MemberInvitation("a@example.com", "https://flags.example.com", name, state.Member{Role: events.ViewerRole}),
		SandboxNotice("a@example.com", "https://flags.example.com", name, notify.WarnOfDeletion, events.TenantCreated{}.SandboxEndsAt),
	} {
		if m.Subject != "An invitation" && m.Subject != "Your sandbox will be deleted" || strings.Contains(m.Text, "evil") {
			t.Errorf("%q: %s", m.Subject, m.Text)
		}
	}
}
