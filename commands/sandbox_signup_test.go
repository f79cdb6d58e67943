package commands_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/people"
	"flagledger/commands/sandbox"
	"flagledger/commands/writer"
	"flagledger/events"
)

// twoStepIdentity signs up in two steps as Firebase does: first the account, then its verified address.
type twoStepIdentity struct {
	*local.Provider
	*steps
}

func (i twoStepIdentity) SignUpVerified(
	ctx context.Context, email, password, displayName string,
) (people.Session, error) {
	session, err := i.SignUp(ctx, email, password, displayName)
	if err != nil {
		return session, err
	}
	session.EmailVerified = true
	return session, i.MarkVerified(ctx, session.UserID)
}

func (i twoStepIdentity) MarkVerified(ctx context.Context, userID string) error {
	if err := i.take("mark verified"); err != nil {
		return err
	}
	return i.Provider.MarkVerified(ctx, userID)
}

// steppingLinks uses up links in a step.
type steppingLinks struct {
	*jobs.Links
	*steps
}

func (l steppingLinks) RemoveSandboxRequest(ctx context.Context, requestID string) error {
	if err := l.take("close"); err != nil {
		return err
	}
	return l.Links.RemoveSandboxRequest(ctx, requestID)
}

func (d steppingDirectory) SaveDemoPeople(ctx context.Context, list []commands.DemoPerson) error {
	if err := d.take("save demo people"); err != nil {
		return err
	}
	return d.Directory.SaveDemoPeople(ctx, list)
}

// noTenants is a list without tenants.
type noTenants struct{}

func (noTenants) CountCreated(context.Context, string, time.Time) (tenants, recent int, err error) {
	return 0, 0, nil
}

// sandboxSignUp has all actions of a link as steps, except the sandbox's facts, which are appended at once.
func (w *world) sandboxSignUp(heard people.People) *sandbox.SignUp {
	signIn := w.signIn(nil)
	signIn.People = heard
	return &sandbox.SignUp{
		Tenants: noTenants{},
		Links:   steppingLinks{w.links, w.steps}, Identity: twoStepIdentity{w.identity, w.steps}, SignIn: signIn,
		Sandboxes: &sandbox.Sandboxes{
			Writer:    writer.NewWriter(w.store, shown, writer.NoQuotas{}, time.Now),
			Directory: steppingDirectory{w.directory, w.steps},
			Active:    time.Hour,
			Now:       time.Now,
			Log:       slog.New(slog.DiscardHandler),
		},
	}
}

// sandboxLink returns the token of a sandbox link mailed to an address.
func (w *world) sandboxLink(t *testing.T, email string) (token string) {
	t.Helper()
	token = uuid.NewString()
	hash := sha256.Sum256([]byte(token))
	_, err := w.pool.Exec(t.Context(), `insert into keep.sandbox_requests (id, email, name, asked_at, expires_at, hashes)
		values ($1, $2, 'Ada', (select now() - count(*) * interval '1 minute' from keep.sandbox_requests), now() + interval '1 hour', array[$3::bytea])`,
		uuid.New(), email, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// sandboxes lists the ids of the sandboxes that a person created, or of all.
func (w *world) sandboxes(t *testing.T, creator string) (ids []string) {
	t.Helper()
	for page, err := range w.store.Subscribe(t.Context(), events.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			if fact, ok := e.Fact.(events.TenantCreated); ok && fact.Sandbox && (creator == "" || e.Actor.ID == creator) {
				ids = append(ids, fact.ID)
			}
		}
		if page.Live {
			break
		}
	}
	return ids
}

const sandboxPassword = "correct horse battery"

var opening = []string{
	"mark verified",
	"save profile",
	"append user.registered",
	"append tenant.created",
	"pending memberships",
	"visits",
	"save demo people",
	"close",
}

// If any step of a link fails, its next use completes it: with one verified account and one sandbox.
func TestALinkToASandboxIsUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for failing := range len(opening) + 1 {
		email := uuid.NewString() + "@example.com"
		token, signUp := w.sandboxLink(t, email), w.sandboxSignUp(&knownPeople{})
		open := func() error { return signUp.Open(t.Context(), writer.By{}, token, "", sandboxPassword) }
		*w.steps = steps{failing: failing}
		err := open()
		want := opening
		if failing > 0 {
			want = opening[:failing]
		}
		if diff := cmp.Diff(want, w.taken); diff != "" || errors.Is(err, errStep) != (failing > 0) {
			t.Errorf("got %v after the steps (-want +got):\n%s", err, diff)
		}
		*w.steps = steps{}
		if failing > 0 {
			if err := open(); err != nil {
				t.Errorf("after %s failed: %v", opening[failing-1], err)
			}
		}
		if err := open(); commands.KindOf(err) != commands.Invalid {
			t.Errorf("a link that was used up: %v", err)
		}
		session, err := w.identity.SignIn(t.Context(), email, sandboxPassword)
		if err != nil || !session.EmailVerified {
			t.Errorf("the account is %+v: %v", session.Claims, err)
		}
		if made := w.sandboxes(t, session.UserID); len(made) != 1 {
			t.Errorf("they have the sandboxes %v", made)
		}
	}
}

// A person with a link and the password of the account with its address has proved that both are theirs.
func TestALinkToASandboxVerifiesAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	email := uuid.NewString() + "@example.com"
	before := w.signUp(t, email)
	token, signUp := w.sandboxLink(t, email), w.sandboxSignUp(&knownPeople{})
	if err := signUp.Open(t.Context(), writer.By{}, token, "", "another horse"); commands.KindOf(err) != commands.Unauthenticated {
		t.Errorf("with a wrong password: %v", err)
	}
	if in, err := w.identity.SignIn(t.Context(), email, sandboxPassword); err != nil || in.EmailVerified {
		t.Fatalf("got %+v: %v", in.Claims, err)
	}
	if err := signUp.Open(t.Context(), writer.By{}, token, "", sandboxPassword); err != nil {
		t.Fatal(err)
	}
	if in, err := w.identity.SignIn(t.Context(), email, sandboxPassword); err != nil || !in.EmailVerified ||
		in.UserID != before.UserID {
		t.Errorf("got %+v: %v", in.Claims, err)
	}
}

// atOnceIdentity waits until all callers have signed in.
type atOnceIdentity struct {
	*local.Provider
	all *sync.WaitGroup
}

func (i atOnceIdentity) SignUpVerified(
	ctx context.Context, email, password, displayName string,
) (people.Session, error) {
	session, err := i.Provider.SignUpVerified(ctx, email, password, displayName)
	if err == nil {
		i.all.Done()
		i.all.Wait()
	}
	return session, err
}

func (i atOnceIdentity) SignIn(ctx context.Context, email, password string) (people.Session, error) {
	session, err := i.Provider.SignIn(ctx, email, password)
	i.all.Done()
	i.all.Wait()
	return session, err
}

// atOnce opens links concurrently for a person who has created n other tenants.
func (w *world) atOnce(t *testing.T, heard people.People, others int, tokens ...string) (errs []error) {
	t.Helper()
	all := &sync.WaitGroup{}
	all.Add(len(tokens))
	signUp := w.sandboxSignUp(heard)
	signUp.Tenants = counted{t, w, others}
	signUp.Identity, signUp.Links, signUp.SignIn.Directory = atOnceIdentity{w.identity, all}, w.links, w.directory
	signUp.SignIn.Writer, signUp.Sandboxes.Directory = signUp.Sandboxes.Writer, w.directory
	errs = make([]error, len(tokens))
	var done sync.WaitGroup
	for i, token := range tokens {
		done.Go(func() { errs[i] = signUp.Open(t.Context(), writer.By{}, token, "", sandboxPassword) })
	}
	done.Wait()
	return errs
}

func TestALinkToASandboxIsUsedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.sandboxLink(t, uuid.NewString()+"@example.com")
	if errs := w.atOnce(t, &knownPeople{}, 0, token, token); errors.Join(errs...) != nil {
		t.Errorf("got %v", errs)
	}
	if made := w.sandboxes(t, ""); len(made) != 1 {
		t.Errorf("there are the sandboxes %v", made)
	}
}

// counted counts a person's sandboxes beside their other tenants.
type counted struct {
	t      *testing.T
	w      *world
	others int
}

func (c counted) CountCreated(context.Context, string, time.Time) (tenants, recent int, err error) {
	return c.others + len(c.w.sandboxes(c.t, "")), 0, nil
}

// A node alone does not exceed the limit of tenants.
func TestLinksToSandboxesAtTheBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	email := uuid.NewString() + "@example.com"
	w.signUp(t, email)
	var tokens []string
	for range 4 {
		tokens = append(tokens, w.sandboxLink(t, email))
	}
	errs := w.atOnce(t, &knownPeople{registered: true, tenants: []string{"other"}}, commands.MaxCreated-1, tokens...)
	refused := slices.DeleteFunc(slices.Clone(errs),
		func(err error) bool { return commands.KindOf(err) != commands.Conflict })
	if made := w.sandboxes(t, ""); len(made) != 1 || len(refused) != 3 {
		t.Errorf("there are %d sandboxes: %v", len(made), errs)
	}
}
