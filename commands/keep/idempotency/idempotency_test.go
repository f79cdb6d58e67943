package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/commands"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newKeys returns keys in a database of their own, with a clock that stands still.
func newKeys(t testing.TB) (k *Requests, clock *time.Time) {
	t.Helper()
	clock = new(time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.UTC))
	return New(pgtest.Pool(t), 0, func() time.Time { return *clock }), clock
}

var request = Request{Key: "k", Scope: "tenant user POST /flags", Content: `{"key":"f"}`}

// outcome describes the result of Begin in a word.
func outcome(t testing.TB, k *Requests, r Request) (word string, a *Attempt, answer *Answer) {
	t.Helper()
	a, answer, err := k.Begin(t.Context(), r)
	switch {
	case a != nil && answer == nil && err == nil:
		return "attempt", a, nil
	case a == nil && answer != nil && err == nil:
		return "answer", nil, answer
	case commands.KindOf(err) == commands.Conflict:
		return "conflict", nil, nil
	case commands.KindOf(err) == commands.Invalid:
		return "invalid", nil, nil
	}
	t.Fatalf("%v, %v, %v", a, answer, err)
	return "", nil, nil
}

func begin(t testing.TB, k *Requests, r Request, want string) (*Attempt, *Answer) {
	t.Helper()
	word, a, answer := outcome(t, k, r)
	if word != want {
		t.Fatalf("it comes to %s, want %s", word, want)
	}
	return a, answer
}

// resume checks the result of Resume in a word.
func resume(t testing.TB, k *Requests, r Request, want string) (a *Attempt) {
	t.Helper()
	a, answer, err := k.Resume(t.Context(), r)
	got := "nothing"
	switch {
	case a != nil && answer == nil && err == nil:
		got = "attempt"
	case a == nil && answer != nil && err == nil:
		got = "answer"
	case commands.KindOf(err) == commands.Conflict:
		got = "conflict"
	case commands.KindOf(err) == commands.Invalid:
		got = "invalid"
	case err != nil:
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("it comes to %s, want %s", got, want)
	}
	return a
}

func TestOnlyWhatWasBegunIsResumed(t *testing.T) {
	t.Parallel()
	k, clock := newKeys(t)
	resume(t, k, request, "nothing")
	dead, _ := begin(t, k, request, "attempt")
	resume(t, k, request, "conflict")
	*clock = clock.Add(lease)
	other := request
	other.Content = "{}"
	resume(t, k, other, "invalid")
	heir := resume(t, k, request, "attempt")
	begin(t, k, request, "conflict")
	if heir.Once.NewID() != dead.Once.NewID() {
		t.Error("made again, the request has other ids")
	}
	if err := heir.Finish(t.Context(), Answer{Status: 204}); err != nil {
		t.Fatal(err)
	}
	resume(t, k, request, "answer")
	resume(t, k, other, "invalid")
	*clock = clock.Add(TTL)
	resume(t, k, request, "nothing")
}

func TestAnAnswerIsKept(t *testing.T) {
	t.Parallel()
	k, clock := newKeys(t)
	first, _ := begin(t, k, request, "attempt")
	begin(t, k, request, "conflict")
	want := Answer{
		Status: 201,
		Header: map[string][]string{"Location": {"/flags/f"}, "X": {"1", "2"}},
		Body:   []byte("secret \x00\xff body"),
	}
	if err := first.Finish(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, got := begin(t, k, request, "answer"); !reflect.DeepEqual(*got, want) {
			t.Errorf("answered with %v, want %v", got, want)
		}
	}
	other := request
	other.Content = "{}"
	begin(t, k, other, "invalid")
	for _, r := range []Request{{"l", request.Scope, request.Content}, {"k", "other", request.Content}, {"k" + request.Scope[:1], request.Scope[1:], request.Content}} {
		begin(t, k, r, "attempt")
	}
	*clock = clock.Add(TTL - time.Millisecond)
	begin(t, k, request, "answer")
	begin(t, k, other, "invalid")
}

func TestAKeyExpires(t *testing.T) {
	t.Parallel()
	k, clock := newKeys(t)
	first, _ := begin(t, k, request, "attempt")
	if err := first.Finish(t.Context(), Answer{Status: 204}); err != nil {
		t.Fatal(err)
	}
	*clock = clock.Add(TTL)
	resume(t, k, request, "nothing")
	second, _ := begin(t, k, request, "attempt")
	if first.Once.NewID() == second.Once.NewID() {
		t.Error("a new request has the ids of an old one")
	}
	old := request
	old.Scope = "old"
	begin(t, k, old, "attempt")
	*clock = clock.Add(TTL - time.Millisecond)
	other := request
	other.Scope = "other"
	begin(t, k, other, "attempt")
	*clock = clock.Add(time.Millisecond)
	if err := k.RemoveOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := k.db.QueryRow(t.Context(), `select count(*) from keep.idempotency`).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d keys are left, want 1: %v", left, err)
	}
}

func TestADeadNode(t *testing.T) {
	t.Parallel()
	k, clock := newKeys(t)
	dead, _ := begin(t, k, request, "attempt")
	other := request
	other.Content = "{}"
	*clock = clock.Add(lease - time.Millisecond)
	begin(t, k, request, "conflict")
	begin(t, k, other, "invalid")
	*clock = clock.Add(time.Millisecond)
	begin(t, k, other, "invalid")
	heir, _ := begin(t, k, request, "attempt")
	begin(t, k, request, "conflict")
	if heir.Once.NewID() != dead.Once.NewID() {
		t.Error("made again, the request has other ids")
	}
	// If the first caller was not dead, it can no longer decide.
	if err := dead.Finish(t.Context(), Answer{Status: 500}); err != nil {
		t.Fatal(err)
	}
	begin(t, k, request, "conflict")
	if err := heir.Finish(t.Context(), Answer{Status: 201}); err != nil {
		t.Fatal(err)
	}
	if err := dead.Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, answer := begin(t, k, request, "answer"); answer.Status != 201 {
		t.Errorf("answered with %d", answer.Status)
	}
}

func TestWhatIsAbandonedIsMadeAgainAtOnce(t *testing.T) {
	t.Parallel()
	k, _ := newKeys(t)
	first, _ := begin(t, k, request, "attempt")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // its caller disconnects
	if err := first.Abandon(ctx); err != nil {
		t.Fatal(err)
	}
	other := request
	other.Content = "{}"
	begin(t, k, other, "invalid")
	second, _ := begin(t, k, request, "attempt")
	if second.Once.NewID() != first.Once.NewID() {
		t.Error("made again, the request has other ids")
	}
}

func TestOneAttemptAtATime(t *testing.T) {
	t.Parallel()
	k, _ := newKeys(t)
	var attempts, answers atomic.Int64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 20 {
				switch word, a, _ := outcome(t, k, request); word {
				case "attempt":
					attempts.Add(1)
					if err := a.Finish(t.Context(), Answer{Status: 200}); err != nil {
						t.Error(err)
					}
				case "answer":
					answers.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if attempts.Load() != 1 || answers.Load() == 0 {
		t.Errorf("%d attempts, %d answers", attempts.Load(), answers.Load())
	}
}

func TestNothingIsKeptInClear(t *testing.T) {
	t.Parallel()
	k, _ := newKeys(t)
	r := Request{Key: "the-key-of-the-caller", Scope: "the-tenant", Content: "the-content"}
	a, _ := begin(t, k, r, "attempt")
	if err := a.Finish(t.Context(), Answer{Status: 201, Body: []byte("the-secret")}); err != nil {
		t.Fatal(err)
	}
	var row []byte
	if err := k.db.QueryRow(t.Context(), `select scope || content || answer from keep.idempotency`).
		Scan(&row); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{r.Key, r.Scope, r.Content, "the-secret", "Status"} {
		if bytes.Contains(row, []byte(text)) {
			t.Errorf("%q is in the database", text)
		}
	}
	for _, guess := range [][32]byte{sha256.Sum256([]byte(r.Content)), sha256.Sum256(append(r.storedScope(), r.Content...))} {
		if bytes.Contains(row, guess[:]) {
			t.Error("what the request was can be tried")
		}
	}
	other := r
	other.Key = "another key"
	if bytes.Equal(r.contentMAC(), other.contentMAC()) {
		t.Error("the MAC of a request does not depend on its key")
	}
	if _, err := k.db.Exec(
		t.Context(), `update keep.idempotency set answer = set_byte(answer, 40, get_byte(answer, 40) # 1)`,
	); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := k.Begin(t.Context(), r); err == nil {
		t.Errorf("an answer that was changed is given: %v", answer)
	}
}

func TestTheDatabaseIsGone(t *testing.T) {
	t.Parallel()
	k, _ := newKeys(t)
	a, _ := begin(t, k, request, "attempt")
	k.db.Close()
	if _, _, err := k.Begin(t.Context(), request); commands.KindOf(err) != commands.Unavailable {
		t.Error(err)
	}
	if err := a.Finish(t.Context(), Answer{}); commands.KindOf(err) != commands.Unavailable {
		t.Error(err)
	}
}
