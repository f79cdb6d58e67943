package http_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
)

// served records what a flag served in an environment a minute ago.
func (l lifecycles) served(key, environment, outcome, variationID, variationName, value string) {
	l.t.Helper()
	l.given(key, use{environmentID: l.environmentID(environment), evaluated: time.Minute, outcome: outcome})
	_, err := l.db.Exec(
		l.t.Context(),
		`insert into keep.flag_outcomes (tenant_id, flag_key, life, outcome, variation_id, variation_name, value)
		select tenant_id, key, created_version, $3, nullif($4, ''), nullif($5, ''), $6::text::json from read.flags where tenant_id = $1 and key = $2 on conflict do nothing`,
		l.me.Tenant,
		key,
		outcome,
		variationID,
		variationName,
		value,
	)
	if err != nil {
		l.t.Fatal(err)
	}
}

// calledBy records who evaluated a flag in an hour and on its day, because that day may already be rolled up.
func (l lifecycles) calledBy(key string, hour time.Time, clients string) {
	l.t.Helper()
	var b pgx.Batch
	b.Queue(
		`insert into keep.flag_hours (tenant_id, hour, flag_key, life, environment_id, run, evaluations, prefetches, reasons, outcomes, clients)
		select tenant_id, $3, key, created_version, '', gen_random_uuid(), 1, 0, '{}', '{}', $4::text::json from read.flags where tenant_id = $1 and key = $2`,
		l.me.Tenant,
		key,
		hour,
		clients,
	)
	b.Queue(
		`insert into keep.flag_days (tenant_id, day, flag_key, life, environment_id, evaluations, prefetches, reasons, outcomes, clients)
		select tenant_id, $3, key, created_version, '', 1, 0, '{}', '{}', $4::text::json from read.flags where tenant_id = $1 and key = $2`,
		l.me.Tenant,
		key,
		hour.Truncate(24*time.Hour),
		clients,
	)
	if err := l.db.SendBatch(l.t.Context(), &b).Close(); err != nil {
		l.t.Fatal(err)
	}
}

func TestCleanup(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/cleanup"
	l := newLifecycles(t)
	nodetest.Same(t, "of a tenant without flags", string(l.me.Call("GET", path, nil).Want(200).Body), "[]")
	machine := l.me.Machine("flags:read", "flags:evaluate")
	for _, key := range []string{"archived", "differs", "live", "permanent", "settled", "unused", "valued"} {
		l.me.CreateFlag(key, map[string]any{"permanent": key == "permanent"})
	}
	variation := l.me.AddVariation("settled", `{"name":"today","value":true}`).Object()["id"].(string)
	l.me.Call("PATCH", nodetest.FlagPath("archived"), `{"status":"archived"}`).Want(200)
	l.wait(40 * 24 * time.Hour)
	l.me.CreateFlag("new", nil)
	l.served("settled", "production", "x", variation, "then", "true")
	l.served("settled", "development", "x", variation, "then", "true")
	l.served("valued", "production", "v", "", "", `{"a":1.50}`)
	l.served("differs", "production", "x", "", "", "true")
	l.served("differs", "development", "y", "", "", "false")
	l.given("live", use{evaluated: time.Minute, outcome: "x", varied: time.Minute})
	hour := l.now().Truncate(time.Hour)
	l.calledBy("settled", hour, `{"`+machine.UserID+`":[3,1000],"":[1,999]}`)
	l.calledBy("settled", hour.Add(-24*time.Hour), `{"`+machine.UserID+`":[4,900]}`)
	l.calledBy("settled", hour.Add(-40*24*time.Hour), `{"gone":[4,1]}`)

	list := l.me.Call("GET", path, nil).Want(200).List()
	nodetest.Same(t, "those unused for longest come first", list[0]["flagKey"], "unused")
	byKey := map[string]map[string]any{}
	for i, entry := range list {
		byKey[entry["flagKey"].(string)] = entry
		if i > 0 && list[i-1]["since"].(string) > entry["since"].(string) {
			t.Errorf("%v is before %v", list[i-1], entry)
		}
	}
	nodetest.Same(t, "flags that can go", len(list), 4)
	nodetest.Members(t, "an entry", byKey["unused"], "flagKey", "lifecycle", "since", "lastEvaluatedAt", "lastRequiredAt", "outcome",
		"clients", "requiredBy")
	for key, want := range map[string]struct {
		lifecycle string
		outcome   any
	}{
		"unused": {"unused", nil}, "differs": {"settled", nil},
		"settled": {"settled", map[string]any{"variationId": variation, "variationName": "today", "value": true}},
		"valued":  {"settled", map[string]any{"variationId": nil, "variationName": nil, "value": map[string]any{"a": 1.5}}},
	} {
		nodetest.Same(t, key, []any{byKey[key]["lifecycle"], byKey[key]["outcome"]}, []any{want.lifecycle, want.outcome})
	}
	nodetest.Same(t, "since when a flag that was evaluated can go", byKey["settled"]["since"],
		byKey["settled"]["lastEvaluatedAt"])
	nodetest.Same(t, "who never was evaluated", byKey["unused"]["lastEvaluatedAt"], nil)
	nodetest.Same(t, "who called", byKey["settled"]["clients"], []any{
		map[string]any{
			"clientId":    machine.UserID,
			"name":        "Machine",
			"evaluations": 7,
			"lastSeenAt":  "1970-01-01T00:16:40.000Z",
			"reported":    0,
		},
		map[string]any{"clientId": nil, "name": nil, "evaluations": 1, "reported": 0, "lastSeenAt": "1970-01-01T00:16:39.000Z"},
	})
	nodetest.Same(t, "nobody", byKey["valued"]["clients"], []any{})
	nodetest.Same(t, "for a machine", machine.Call("GET", path, nil).Want(200).List()[0]["flagKey"], "unused")
	keys := nodetest.Column(list, "flagKey")
	checkPages(t, l.me, path, "flagKey", keys)
	l.given("unused", use{evaluated: time.Minute, outcome: "x", varied: time.Minute}) // the list may be cached
	nodetest.Same(t, "once it is evaluated", nodetest.Column(l.me.Call("GET", path, nil).Want(200).List(), "flagKey"),
		keys[1:])
}
