package keys

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/migrations/pgtest"
)

func TestNodesThatStartAtOnceShareOneKey(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	nodes := make([]*Keys, 4)
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() { nodes[i], errs[i] = tryOpen(t, pool, c, aSecret) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	token := sign(t, nodes[0])
	for _, k := range nodes {
		if len(k.JWKS().Keys) != 1 {
			t.Errorf("%d keys", len(k.JWKS().Keys))
		}
		loads := countLoads(k)
		accepts(t, k, token)
		if loads.Load() != 0 {
			t.Error("a known key was read again")
		}
	}
}

// Two nodes maintain the keys for three months, each at its own times, and a third one only verifies.
func TestKeysAreRotated(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	nodes := []*Keys{open(t, pool, c), open(t, pool, c)}
	bystander := open(t, pool, c)
	began := c.now()
	steps := []time.Duration{59 * time.Minute, 23 * time.Hour}
	firstSeen, firstSigned := map[string]time.Time{}, map[string]time.Time{}
	type live struct {
		text    string
		expires time.Time
	}
	var tokens []live
	for i := 0; c.now().Before(began.Add(100 * 24 * time.Hour)); i++ {
		c.add(steps[i%len(steps)])
		for j, k := range nodes {
			if i%(2*j+1) == 0 {
				if err := k.rotate(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, id := range published(k) {
				if _, ok := firstSeen[id]; !ok {
					firstSeen[id] = c.now()
				}
			}
			text := sign(t, k)
			tokens = append(tokens, live{text, c.now().Add(TokenTTL)})
			id := signedBy(t, text)
			if _, ok := firstSigned[id]; !ok {
				firstSigned[id] = c.now()
			}
			if len(published(k)) > 3 {
				t.Fatalf("%d keys are published", len(published(k)))
			}
		}
		for len(tokens) > 0 && !c.now().Before(tokens[0].expires) {
			tokens = tokens[1:]
		}
		for _, token := range tokens {
			for _, k := range append(nodes, bystander) {
				accepts(t, k, token.text)
			}
		}
	}
	if len(firstSigned) != 4 {
		t.Errorf("%d keys signed within 100 days, want 4", len(firstSigned))
	}
	for id, signed := range firstSigned {
		if ahead := signed.Sub(firstSeen[id]); ahead < publishedBefore && !firstSeen[id].Equal(began.Add(steps[0])) {
			t.Errorf("a key was published %v before it signed, want %v", ahead, publishedBefore)
		}
	}
}

func TestAKeyIsRemovedOnceItsTokensHaveExpired(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	k := open(t, pool, c)
	first := published(k)
	rotated := func(after time.Duration) []string {
		t.Helper()
		c.add(after)
		if err := k.rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return published(k)
	}
	same(t, "before the next is due", rotated(signsFor-publishedBefore-time.Second), first)
	both := rotated(time.Second)
	if len(both) != 2 || both[1] != first[0] {
		t.Fatalf("%v are published, want another before %v", both, first)
	}
	c.add(publishedBefore - time.Second)
	last := sign(t, k)
	same(t, "the last token of the first key", signedBy(t, last), first[0])
	c.add(time.Second)
	same(t, "the first token of the next key", signedBy(t, sign(t, k)), both[0])
	c.add(TokenTTL - 2*time.Second)
	accepts(t, k, last)
	same(t, "while the first may be needed", rotated(keptFor-TokenTTL+time.Second), both)
	same(t, "when it has served", rotated(time.Second), both[:1])
	wantDetail(t, verify(t.Context(), k, last), "the token is signed with an unknown key")
}

// A service that was down when the next key was due publishes it late, but still a day before it signs.
func TestANextKeyThatIsLateIsPublishedFirst(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	first := published(open(t, pool, c))
	c.add(3 * signsFor)
	k := open(t, pool, c)
	same(t, "keys", len(published(k)), 2)
	same(t, "who signs", signedBy(t, sign(t, k)), first[0])
	c.add(publishedBefore)
	same(t, "who signs a day later", signedBy(t, sign(t, k)), published(k)[0])
}

func TestNodesThatPublishAtOncePublishOneKey(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	nodes := make([]*Keys, 4)
	for i := range nodes {
		nodes[i] = open(t, pool, c)
	}
	c.add(signsFor)
	var all sync.WaitGroup
	for _, k := range nodes {
		all.Go(func() {
			if err := k.rotate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range nodes {
		same(t, "keys", published(k), published(nodes[0]))
		same(t, "keys", len(published(k)), 2)
	}
}

func TestTheLogTellsOfEachRotationAndOfNoKey(t *testing.T) {
	var log bytes.Buffer
	c := newClock()
	pool := pgtest.Pool(t)
	k := must(Open(t.Context(), pool, must(ParseSecret(aSecret))(t), "", c.now, slog.New(slog.NewTextHandler(&log, nil))))(t)
	for range 4 {
		c.add(signsFor)
		if err := k.rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]int{"a signing key is published": 5, "a signing key has been removed": 3} {
		if n := strings.Count(log.String(), text); n != want {
			t.Errorf("the log says %d times that %s, want %d:\n%s", n, text, want, log.String())
		}
	}
	for _, key := range k.held.Load().keys {
		if text := fmt.Sprint(key.private.D); strings.Contains(log.String(), text) {
			t.Error("the log tells a key")
		}
	}
}
