package local

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flagledger/commands"
)

// From the tests of argon2's reference implementation.
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
		if p.memory > 64*1024 || p.passes > 16 || p.lanes > 4 || p.passes < 1 || p.lanes < 1 || len(p.sum) < 16 || len(p.salt) < 8 {
			t.Errorf("out of bounds: %q", s)
		}
	})
}

func TestHashersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := make(semaphore, 2)
		var at, most, done atomic.Int32
		work := func() {
			most.Store(max(most.Load(), at.Add(1)))
			time.Sleep(time.Second)
			at.Add(-1)
			done.Add(1)
		}
		// Twelve seconds' worth of work for a wait of five: those of the first five turns, and perhaps of the sixth, get theirs.
		var refused atomic.Int32
		for range 24 {
			go func() {
				if err := h.run(t.Context(), work); err != nil {
					wantKind(t, err, commands.Unavailable)
					refused.Add(1)
				}
			}()
		}
		begun := time.Now()
		for refused.Load()+done.Load() < 24 {
			time.Sleep(100 * time.Millisecond)
		}
		if most.Load() != 2 || done.Load() < 10 || done.Load() > 12 || time.Since(begun) > 7*time.Second {
			t.Errorf("%d at once, %d done, %d refused, after %v", most.Load(), done.Load(), refused.Load(), time.Since(begun))
		}
		if err := h.run(t.Context(), func() {}); err != nil {
			t.Errorf("a turn was not given back: %v", err)
		}
	})
}

func TestHashersHonourTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := make(semaphore, 1)
		h <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		err := h.run(ctx, func() { t.Error("ran") })
		if wantKind(t, err, commands.Unavailable); !errors.Is(err, context.Canceled) || time.Since(begun) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

func TestAPanicFreesItsHasher(t *testing.T) {
	h := make(semaphore, 1)
	func() {
		defer func() { _ = recover() }()
		_ = h.run(t.Context(), func() { panic("x") })
	}()
	if err := h.run(t.Context(), func() {}); err != nil {
		t.Error(err)
	}
}

func BenchmarkHash(b *testing.B) {
	b.ReportAllocs()
	p := hash(secret, recommendedMemory)
	for b.Loop() {
		p.matches(secret)
	}
}
