package local

import (
	"strings"
	"testing"
)

// The values come from the tests of argon2's reference implementation.
const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"

func TestPasswordOfTheReferenceImplementation(t *testing.T) {
	p := must(parse(reference))(t)
	if !p.matches("password") || p.matches("Password") || p.matches("") {
		t.Error("the reference's hash does not hold")
	}
}

func TestPasswordRoundTrip(t *testing.T) {
	p := must(parse(hash(secret, recommendedMemory).String()))(t)
	if !p.matches(secret) || p.matches(secret+" ") {
		t.Error("a hash does not hold after it was kept")
	}
	if first, second := hash(secret, recommendedMemory), hash(secret, recommendedMemory); first.String() == second.String() {
		t.Error("two hashes share a salt")
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"",
		"password",
		strings.Replace(reference, "argon2id", "argon2i", 1),
		strings.Replace(reference, "v=19", "v=16", 1),
		strings.Replace(reference, "m=65536", "m=65537", 1),
		strings.Replace(reference, "m=65536", "m=7", 1),
		strings.Replace(reference, "m=65536", "m=4294967296", 1),
		strings.Replace(reference, "m=65536", "m=-1", 1),
		strings.Replace(reference, "m=65536", "m=+65536", 1),
		strings.Replace(reference, "m=65536", "m=065536", 1),
		strings.Replace(reference, "t=2", "t=0", 1),
		strings.Replace(reference, "t=2", "t=17", 1),
		strings.Replace(reference, "p=1", "p=0", 1),
		strings.Replace(reference, "p=1", "p=5", 1),
		strings.Replace(reference, "p=1", "p=257", 1),
		strings.Replace(reference, "p=1", "p=1,keyid=x", 1),
		strings.Replace(reference, "m=65536,t=2", "t=2,m=65536", 1),
		strings.Replace(reference, "c29tZXNhbHQ", "c29tZQ", 1),
		strings.Replace(reference, "c29tZXNhbHQ", "c29tZXNhbHR", 1), // stray bits
		strings.Replace(reference, "c29tZXNhbHQ", "c29tZXNhbHQ=", 1),
		strings.Replace(reference, "c29tZXNhbHQ", "c29tZXNh\nbHQ", 1),
		strings.Replace(reference, "c29tZXNhbHQ", strings.Repeat("AAAA", 22), 1),
		strings.Replace(reference, "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "CTFhFdXPJO1a", 1),
		reference + "$",
		reference + strings.Repeat("A", 100),
		" " + reference,
	} {
		if _, err := parse(s); err == nil {
			t.Errorf("parsed %q", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(reference)
	f.Add(hash(secret, recommendedMemory).String())
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$$")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parse(s)
		if err != nil {
			return
		}
		if p.String() != s {
			t.Errorf("%q is spelled %q", s, p)
		}
		if p.memory > 64*1024 || p.passes > 16 || p.lanes > 4 || p.passes < 1 || p.lanes < 1 || len(p.sum) < 16 ||
			len(p.salt) < 8 {
			t.Errorf("out of bounds: %q", s)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	b.ReportAllocs()
	p := hash(secret, recommendedMemory)
	for b.Loop() {
		p.matches(secret)
	}
}

func TestPasswordsCompareByTheirComposedForm(t *testing.T) {
	const composed, decomposed = "p\u00e4ssword", "pa\u0308ssword"
	for _, set := range []string{composed, decomposed} {
		kept := hash(set, 8)
		if !kept.matches(composed) || !kept.matches(decomposed) || kept.matches("password") {
			t.Errorf("a password that was set as %+q does not match both forms", set)
		}
	}
	before := newPasswordHash(8)
	before.sum = before.sumOf(decomposed)
	if !before.matches(decomposed) {
		t.Error("a password that was set before does not match any longer")
	}
}
