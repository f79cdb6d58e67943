package directory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/commands/people"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestWhomTheDirectoryMeets(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	list := directory.New(pool, time.Now)
	type noted struct {
		email    string
		verified bool
	}
	says := func(who, email string, verified bool) people.Claims {
		return people.Claims{UserID: who, Email: email, EmailVerified: verified}
	}
	for name, c := range map[string]struct {
		tokens []people.Claims //  @ stands for the domain of this case
		want   map[string]noted
	}{
		"the address is gone":                      {[]people.Claims{says("a", "a@", true), says("a", "", false)}, map[string]noted{"a": {"", false}}},
		"a token without an address says it is":    {[]people.Claims{says("a", "a@", true), says("a", "", true)}, map[string]noted{"a": {"", false}}},
		"a verified address stays so":              {[]people.Claims{says("a", "a@", true), says("a", "A@", false)}, map[string]noted{"a": {"A@", true}}},
		"another address is not verified":          {[]people.Claims{says("a", "a@", true), says("a", "b@", false)}, map[string]noted{"a": {"b@", false}}},
		"an address is there again":                {[]people.Claims{says("a", "", false), says("a", "a@", false), says("a", "a@", true)}, map[string]noted{"a": {"a@", true}}},
		"a verified owner keeps the address":       {[]people.Claims{says("a", "a@", true), says("b", "b@", true), says("b", "A@", false)}, map[string]noted{"a": {"a@", true}, "b": {"", false}}},
		"whoever verifies an address gets it":      {[]people.Claims{says("a", "a@", false), says("b", "A@", true)}, map[string]noted{"a": {"", false}, "b": {"A@", true}}},
		"whoever verified an address later has it": {[]people.Claims{says("a", "a@", true), says("b", "a@", true), says("a", "a@", false)}, map[string]noted{"a": {"", false}, "b": {"a@", true}}},
	} {
		t.Run(name, func(t *testing.T) {
			domain, ctx := uuid.NewString()+".example", context.Background()
			met := map[string]bool{}
			for _, token := range c.tokens {
				token.UserID += domain
				if token.Email != "" {
					token.Email += domain
				}
				stranger, err := list.SaveProfile(ctx, token)
				if err != nil || stranger == met[token.UserID] {
					t.Fatalf("%s is a stranger: %v (%v)", token.UserID, stranger, err)
				}
				met[token.UserID] = true
			}
			for who, want := range c.want {
				var got noted
				err := pool.QueryRow(ctx, `select coalesce(replace(email, $2, ''), ''), email_verified from keep.people where user_id = $1`, who+domain, domain).
					Scan(&got.email, &got.verified)
				if err != nil || got != want {
					t.Errorf("%s is noted as %+v, want %+v (%v)", who, got, want, err)
				}
			}
		})
	}
}

func TestVisitsListLastOneFirst(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	list := directory.New(pgtest.Pool(t), func() time.Time { return clock })
	if _, err := list.SaveProfile(t.Context(), people.Claims{UserID: "u", Email: "u@example.com"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		later   time.Duration
		visited string
		want    string
	}{{0, "a", "a"}, {time.Hour, "b", "b"}, {-time.Minute, "a", "b"}, {2 * time.Minute, "a", "a"}} {
		clock = clock.Add(c.later)
		list.NoteVisit("u", c.visited, time.Time{})
		if last, err := list.Visits(t.Context(), "u"); len(last) == 0 || last[0].TenantID != c.want || err != nil {
			t.Errorf("after a visit to %q at %v: got %q, %v, want %q", c.visited, clock, last, err, c.want)
		}
	}
}

func TestVisitsOfDeletedTenantsAreRemoved(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	clock := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	list := directory.New(pool, func() time.Time { return clock })
	visit := func(who string, tenants ...string) {
		t.Helper()
		if _, err := list.SaveProfile(t.Context(), people.Claims{UserID: who, Email: who + "@example.com"}); err != nil {
			t.Fatal(err)
		}
		for _, tenant := range tenants {
			clock = clock.Add(time.Minute)
			list.NoteVisit(who, tenant, time.Time{})
		}
		if _, err := list.Visits(t.Context(), who); err != nil { // saves the visits
			t.Fatal(err)
		}
	}
	visit("one", "gone", "there", "gone too")
	visit("two", "gone", "gone too", "there")
	for _, c := range []struct {
		later time.Duration
		want  string
	}{
		{time.Hour, "one gone, one gone too, one there, two gone, two gone too, two there"},
		{2 * time.Hour, "one gone too, one there, two there"},
	} {
		clock = clock.Add(c.later)
		if err := list.RemoveVisits(t.Context(), func(tenantID string) bool { return tenantID == "there" }); err != nil {
			t.Fatal(err)
		}
		var left string
		err := pool.QueryRow(t.Context(), `select string_agg(user_id || ' ' || tenant_id, ', ' order by user_id, tenant_id) from keep.tenant_use`).
			Scan(&left)
		if err != nil || left != c.want {
			t.Errorf("after %v there are %q (%v), want %q", c.later, left, err, c.want)
		}
	}
}

// Postgres and the service agree which addresses are equal, in any locale of the database.
func TestAddressesAreTheSameInPostgres(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	inPostgres := func(a, b string) (same bool) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `select lower($1 collate "C") = lower($2 collate "C")`, a, b).
			Scan(&same); err != nil {
			t.Fatal(err)
		}
		return same
	}
	address := rapid.Custom(func(t *rapid.T) string {
		letters := rapid.SampledFrom([]string{"k", "K", "i", "I", "ı", "İ", "\u212A", "\uff4b", "к"})
		part := rapid.Map(rapid.SliceOfN(letters, 1, 2), func(l []string) string { return strings.Join(l, "") })
		return part.Draw(t, "local") + "@" + part.Draw(t, "domain") + ".com"
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := address.Draw(t, "a"), address.Draw(t, "b")
		canonical, ok := commands.ParseEmail(a)
		if !ok {
			return
		}
		stored := b // an earlier release may have stored it
		if other, ok := commands.ParseEmail(b); ok {
			stored = other
		}
		if inGo := commands.EmailKey(a) == commands.EmailKey(b); inGo != inPostgres(canonical, stored) {
			t.Errorf("%q and %q are the same: %v, and in Postgres %v", a, b, inGo, !inGo)
		}
	})
}

// Invitations that require acceptance do not prevent the others from joining.
func TestInvitationsToAcceptLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	d := directory.New(pgtest.Pool(t), time.Now)
	const email = "ada@example.com"
	add := func(tenantID string, mustAccept bool) {
		t.Helper()
		if _, err := d.AddPending(t.Context(), tenantID, email, uuid.NewString(), mustAccept); err != nil {
			t.Fatal(err)
		}
	}
	add("plain", false)
	for i := range 25 {
		add(fmt.Sprint("accept", i), true)
	}
	for mustAccept, want := range map[bool]int{false: 1, true: 20} {
		list, err := d.PendingMemberships(t.Context(), "Ada@Example.com", mustAccept, 20)
		if err != nil || len(list) != want {
			t.Errorf("must accept %v: %d pending memberships (%v), want %d", mustAccept, len(list), err, want)
		}
	}
}

func TestDeclinedInvitationsAreForgotten(t *testing.T) {
	t.Parallel()
	list := directory.New(pgtest.Pool(t), time.Now)
	if _, err := list.SaveProfile(t.Context(), people.Claims{UserID: "u", Email: "u@example.com"}); err != nil {
		t.Fatal(err)
	}
	for _, forget := range []func() error{
		func() error { return list.ForgetDeclined(t.Context(), "t", "u") },
		func() error { return list.ForgetTenant(t.Context(), "t") },
		func() error { return list.Erase(t.Context(), "u") },
	} {
		for step, do := range []func() error{func() error { return list.NoteDeclined(t.Context(), "t", "u") }, forget} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
			has, err := list.HasDeclined(t.Context(), "t", "u")
			if err != nil || has != (step == 0) {
				t.Errorf("after step %d they have declined: %v, %v", step, has, err)
			}
		}
	}
}
