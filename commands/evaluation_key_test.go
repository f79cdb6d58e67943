package commands

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/events"
)

var (
	browserKey = events.EvaluationKeyAdded{
		KeyID: "k", Name: "Shop", Kind: events.BrowserKey, Environment: production, Origins: []string{"https://app.example.com"},
		KeyMaterial: events.KeyMaterial{Key: "pk_abc"},
	}
	keyRef = EvaluationKeyRef{TenantRef{"t"}, "k"}
)

func createShopKey() CreateEvaluationKey {
	return CreateEvaluationKey{
		TenantRef: TenantRef{"t"}, ID: "k", Name: "Shop", Kind: events.BrowserKey, Environment: "production",
		Origins: []string{"https://app.example.com"}, Random: "ABC", Now: noon,
	}
}

func TestCreateEvaluationKey(t *testing.T) {
	given := []events.Fact{acme, events.EnvironmentAdded{Environment: production}}
	create := createShopKey()
	when(t, given, create).then(browserKey)
	when(t, nil, create).refused(NotFound)

	signed := create
	signed.SigningID = "s"
	want := browserKey
	want.SigningID = "s"
	when(t, given, signed).then(want)

	server := CreateEvaluationKey{
		TenantRef: TenantRef{"t"}, ID: "k", Name: "Cart", Kind: events.ServerKey, Environment: "production", Edge: true,
		ExpiresAt: noon.Add(time.Hour), Random: "ABC", Now: noon,
	}
	sum := sha256.Sum256([]byte("sk_abc"))
	when(t, given, server).then(events.EvaluationKeyAdded{
		KeyID: "k", Name: "Cart", Kind: events.ServerKey, Environment: production, Edge: true, ExpiresAt: noon.Add(time.Hour),
		KeyMaterial: events.KeyMaterial{Hash: sum[:]},
	})

	when(t, given, CreateEvaluationKey{TenantRef: TenantRef{"t"}}).refused(Invalid, "name", "kind", "environment")
	server.Origins, server.SigningID, server.ExpiresAt = []string{"https://app.example.com"}, "s", noon
	when(t, given, server).refused(Invalid, "origins", "signed", "expiresAt")
	create.Edge, create.Origins = true, strings.Split(strings.Repeat("x,", 20), ",")
	when(t, given, create).refused(Invalid, "edge", "origins")
}

func TestOriginsOfEvaluationKeys(t *testing.T) {
	given := []events.Fact{acme, events.EnvironmentAdded{Environment: production}}
	create := createShopKey()
	for _, good := range []string{
		"https://app.example.com", "https://*.example.com", "https://intranet", "https://app.example.com:8443", "http://localhost",
		"http://localhost:*", "http://localhost:3000", "https://xn--bcher-kva.example",
	} {
		create.Origins = []string{good}
		fact := browserKey
		fact.Origins = create.Origins
		when(t, given, create).then(fact)
	}
	for _, bad := range []string{
		"", "*", "null", "http://app.example.com", "https://app.example.com/", "https://App.example.com", "https://app.example.com.",
		"https://*", "https://*.com", "https://a.*.example.com", "https://app.example.com:443", "https://u@example.com",
		"https://bücher.example", "http://localhost.evil.example:*", "https://" + strings.Repeat("a", 300),
	} {
		create.Origins = []string{"https://a.example.com", bad}
		when(t, given, create).refused(Invalid, "origins[1]")
	}
	create.Origins = []string{"https://a.example.com", "https://a.example.com"}
	when(t, given, create).refused(Invalid, "origins[1]")
}

func TestATenantHasAtMostAHundredEvaluationKeys(t *testing.T) {
	given := []events.Fact{acme, events.EnvironmentAdded{Environment: production}}
	for i := range 100 {
		key := browserKey
		key.KeyID = fmt.Sprint("k", i)
		given = append(given, key)
	}
	when(t, given, createShopKey()).refused(Conflict)
	when(t, append(given, events.EvaluationKeyRemoved{KeyID: "k7"}), createShopKey()).then(browserKey)
}

func TestChangeEvaluationKey(t *testing.T) {
	given := []events.Fact{acme, events.EnvironmentAdded{Environment: production}, browserKey}
	change := ChangeEvaluationKey{
		EvaluationKeyRef: keyRef, Name: new("Store"), Origins: &[]string{}, ExpiresAt: new(noon.Add(time.Hour)), Now: noon,
	}
	changed := events.EvaluationKeyChanged{
		KeyID:       "k",
		Environment: production,
		Name:        &events.Change[string]{From: "Shop", To: "Store"},
		Origins:     &events.Change[[]string]{From: []string{"https://app.example.com"}, To: []string{}},
		ExpiresAt:   &events.Change[*time.Time]{To: new(noon.Add(time.Hour))},
	}
	when(t, given, change).then(changed)
	when(t, append(given, changed), change).then()
	later := noon.Add(2 * time.Hour) // the key has expired
	renamed := ChangeEvaluationKey{EvaluationKeyRef: keyRef, Name: new("Old"), ExpiresAt: new(noon.Add(time.Hour)), Now: later}
	when(t, append(slices.Clone(given), changed), renamed).then(events.EvaluationKeyChanged{
		KeyID: "k", Environment: production, Name: &events.Change[string]{From: "Store", To: "Old"},
	})
	when(t, append(slices.Clone(given), changed), RotateEvaluationKey{EvaluationKeyRef: keyRef, Random: "DEF", Now: later}).
		refused(Conflict)
	never := ChangeEvaluationKey{EvaluationKeyRef: keyRef, ExpiresAt: &time.Time{}, Now: noon}
	when(t, append(given, changed), never).then(events.EvaluationKeyChanged{
		KeyID: "k", Environment: production, ExpiresAt: &events.Change[*time.Time]{From: new(noon.Add(time.Hour))},
	})
	change.Name, change.Origins, change.ExpiresAt = new(""), &[]string{"x"}, new(noon)
	when(t, given, change).refused(Invalid, "name", "origins[0]", "expiresAt")
	when(t, given[:2], change).refused(NotFound)
	when(t, append(given, events.EnvironmentDeleted{Environment: production}), change).refused(NotFound)
}

func TestRotateEvaluationKey(t *testing.T) {
	given := []events.Fact{acme, events.EnvironmentAdded{Environment: production}, browserKey}
	rotate := RotateEvaluationKey{EvaluationKeyRef: keyRef, Random: "def", SigningID: "s2", Now: noon}
	rotated := events.EvaluationKeyRotated{
		KeyID: "k", Environment: production, KeyMaterial: events.KeyMaterial{Key: "pk_def"},
		PreviousUntil: noon.Add(24 * time.Hour),
	}
	when(t, given, rotate).then(rotated)
	when(t, given[:2], rotate).refused(NotFound)
	for range 10 {
		given = append(given, rotated)
	}
	when(t, given, rotate).refused(Conflict)
	rotate.EndNow = true
	rotated.PreviousUntil = noon
	when(t, given, rotate).then(rotated)
}

func TestARotationOfASignedKeyReplacesItsSecretAlone(t *testing.T) {
	signed := browserKey
	signed.SigningID = "s"
	given := []events.Fact{acme, events.EnvironmentAdded{Environment: production}, signed}
	rotate := RotateEvaluationKey{EvaluationKeyRef: keyRef, Random: "def", SigningID: "s2", Now: noon}
	when(t, given, rotate).then(events.EvaluationKeyRotated{
		KeyID: "k", Environment: production, KeyMaterial: events.KeyMaterial{Key: "pk_abc", SigningID: "s2"},
		PreviousUntil: noon.Add(24 * time.Hour),
	})
}

func TestRemoveEvaluationKey(t *testing.T) {
	given := []events.Fact{acme, events.EnvironmentAdded{Environment: production}, browserKey}
	removed := events.EvaluationKeyRemoved{KeyID: "k", Environment: production}
	when(t, given, RemoveEvaluationKey{keyRef}).then(removed)
	when(t, append(given, removed), RemoveEvaluationKey{keyRef}).refused(NotFound)
}
