package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/http/quota"
)

// keptKeys counts the Idempotency-Keys in the database.
func keptKeys(s *nodetest.Service) (n int) {
	s.T.Helper()
	conn, err := pgx.Connect(s.T.Context(), s.DatabaseURL)
	if err != nil {
		s.T.Fatal(err)
	}
	defer func() { _ = conn.Close(s.T.Context()) }()
	if err := conn.QueryRow(s.T.Context(), `select count(*) from keep.idempotency`).Scan(&n); err != nil {
		s.T.Fatal(err)
	}
	return n
}

// Stored answers of Idempotency-Keys for calls without a tenant count towards the daily quota of the person's free
// tenants.
func TestKeysOfCallsAboutNoTenantAreBounded(t *testing.T) {
	t.Parallel()
	const ofTenant, bound = 8 << 10, 4 * 8 * (8 << 10)
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		FlagBytes:   map[events.Plan]int{events.FreePlan: ofTenant, events.SandboxPlan: ofTenant},
		Now:         withinADay().now,
	}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	const path = "/api/v1/tenants"
	made := keyed(me, "made", "POST", path, `{"name":"made"}`).Want(201)
	wrong := map[string]any{"name": "n"}
	for i := range 110 {
		wrong[fmt.Sprintf("%03d%s", i, strings.Repeat("x", 197))] = 1
	}
	largeRefusal := func(i int) *nodetest.Answer { return keyed(me.Lenient(), fmt.Sprint(i), "POST", path, wrong) }
	first, n := largeRefusal(0).Want(422), 1
	for n < 30 && largeRefusal(n).Status == 422 {
		n++
	}
	if n < 8 || n > 13 { // 23 KB each
		t.Errorf("%d answers of %d bytes are kept, where %d bytes may be", n, len(first.Body), bound)
	}
	before := keptKeys(s)
	for range 2 {
		if detail := fmt.Sprint(largeRefusal(n).Refused(429).Object()["detail"]); !strings.Contains(detail, fmt.Sprint(bound)) {
			t.Errorf("refused with %q", detail)
		}
	}
	replays(largeRefusal(0), first)
	keyed(me, "0", "POST", path, `{"name":"m"}`).Refused(422, "Idempotency-Key")
	note := map[string]string{"userId": me.UserID, "tenantId": me.Tenant, "title": "T", "type": "t"}
	keyed(me, "note", "POST", "/api/v1/notifications/send", note).Refused(429)
	keyed(me, "k", "POST", "/api/v1/projects", `{"name":"p"}`).Refused(429)
	nodetest.Same(t, "keys after calls that were refused", keptKeys(s), before)
	me.Call("POST", "/api/v1/notifications/send", note).Want(201)
	me.NewTenant("without a key")
	forgetAnswers(s)
	for range 2 { // built from the facts, and not stored again
		carriedOutAgain(keyed(me, "made", "POST", path, `{"name":"made"}`), made)
	}
	keyed(s.SignUp("other@example.com"), "k", "POST", path, `{"name":"n"}`).Want(201)
	var usage struct {
		AllUnpaid struct{ BytesWrittenToday int }
	}
	me.Call("GET", path+"/"+me.Tenant+"/usage", nil).Want(200).Decode(&usage)
	if n := usage.AllUnpaid.BytesWrittenToday; n < bound || n > bound+64<<10 {
		t.Errorf("%d bytes are shown", n)
	}
}

// Every key counts, even with a short answer or none.
func TestEachKeyCounts(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Now: withinADay().now},
		nodetest.Log(t))
	me := s.SignUp("me@example.com")
	written := func() int { return s.Node.API.Quotas.WrittenToday(me.Tenant) }
	before := written()
	const calls, least = 20, 500
	for i := range calls {
		// payments are not configured
		keyed(me, fmt.Sprint(i), "POST", "/api/v1/billing/portal", map[string]string{"returnUrl": s.URL}).Refused(503)
		keyed(me, fmt.Sprint(i), "DELETE", nodetest.FlagPath("none"), nil).Refused(404)
	}
	if n := written() - before; n < 2*calls*least {
		t.Errorf("%d calls with a key count as %d bytes", 2*calls, n)
	}
	nodetest.Same(t, "keys", keptKeys(s), 2*calls)
}

// Bodiless changes have a daily limit too. Beyond it each person can still toggle flags, whatever other people do.
func TestSwitchesAreBounded(t *testing.T) {
	t.Parallel()
	const bound = 8 * (64 << 10)
	clock := withinADay()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		FlagBytes:   map[events.Plan]int{events.FreePlan: 64 << 10, events.SandboxPlan: 64 << 10},
		Now:         clock.now,
	}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	member, machine, other := me.Join("developer"), me.Machine("flags:write"), me.Machine("flags:write")
	me.CreateFlag("k", nil)
	reason := strings.Repeat("x", 500)
	enabled := false
	change := func(c *nodetest.Client, headers ...string) *nodetest.Answer {
		path := nodetest.FlagPath("k", "/enable")
		if enabled {
			path = nodetest.FlagPath("k", "/disable")
		}
		a := c.Call("POST", path, nil, append(headers, "X-Change-Reason", reason)...)
		if a.Status == 200 {
			enabled = !enabled
		}
		return a
	}
	note := func(upTo int) {
		s.Node.API.Quotas.Wrote(me.Tenant, upTo-s.Node.API.Quotas.WrittenToday(me.Tenant))
	}
	portal := func(headers ...string) int {
		return me.Call("POST", "/api/v1/billing/portal", map[string]string{"returnUrl": s.URL}, headers...).Status
	}
	note(bound)
	me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`).Refused(429)
	for range 2 * quota.SwitchesPerMinute {
		change(me).Want(200)
	}
	if len(me.History("k", "")[0]["reason"].(string)) != len(reason) {
		t.Error("the history does not show the reason")
	}
	note(bound + bound/4)
	for i := range quota.SwitchesPerMinute {
		change([]*nodetest.Client{machine, other}[i%2]).Want(200)
	}
	for _, c := range []*nodetest.Client{machine, other} {
		refused := change(c).Refused(429)
		nodetest.Same(t, "the limit that refuses", refused.Header["Ratelimit-Limit"],
			[]string{fmt.Sprint(quota.SwitchesPerMinute)})
		nodetest.Same(t, "Retry-After", refused.Header.Get("Retry-After"), refused.Header["Ratelimit-Reset"][0])
		if detail := fmt.Sprint(refused.Object()["detail"]); !strings.Contains(detail, fmt.Sprint(bound+bound/4)) {
			t.Errorf("refused with %q", detail)
		}
	}
	for range quota.SwitchesPerMinute - 1 {
		change(me).Want(200)
	}
	nodetest.Same(t, "a call that pays", portal(), 503)
	change(me).Refused(429)
	before := keptKeys(s)
	nodetest.Same(t, "a call that pays, with a key", portal("Idempotency-Key", "k"), 429)
	nodetest.Same(t, "keys that are kept", keptKeys(s), before)
	change(member).Want(200)
	clock.add(time.Minute)
	change(machine).Want(200)
	change(me).Want(200)
	t.Run("as what those of all unpaid tenants of a creator take", func(t *testing.T) {
		creator := s.In(t).SignUp("creator@example.com")
		creator.CreateFlag("k", nil)
		gone := creator.NewTenant("gone")
		s.Node.API.Quotas.Wrote(gone.Tenant, 4*(bound+bound/4))
		gone.Call("DELETE", "/api/v1/tenants/"+gone.Tenant, nil).Want(204)
		for range quota.SwitchesPerMinute - 1 {
			creator.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
		}
		if detail := fmt.Sprint(
			creator.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Refused(429).Object()["detail"],
		); !strings.Contains(detail, "all free and sandbox tenants") {
			t.Errorf("refused with %q", detail)
		}
	})
}
