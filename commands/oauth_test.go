package commands

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

var (
	acme    = events.TenantCreated{ID: "t", Name: "Acme", Plan: events.FreePlan}
	backend = events.OAuthClientCreated{
		ClientID:   "c",
		Name:       "Backend",
		Scopes:     []events.Scope{events.FlagsRead},
		SecretHash: []byte("h"),
	}
	noon       = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clientRef  = ClientRef{TenantRef{"t"}, "c"}
	strangeRef = ClientRef{TenantRef{"t"}, "d"}
)

func TestCreateClient(t *testing.T) {
	given := []events.Fact{acme}
	create := CreateClient{
		TenantRef:  TenantRef{"t"},
		ID:         "c",
		Name:       "Backend",
		Scopes:     []string{"flags:read"},
		SecretHash: []byte("h"),
	}
	when(t, given, create).then(backend)
	when(t, nil, create).refused(NotFound)

	create.Scopes = []string{
		"projects:write",
		"flags:read",
		"projects:write",
		"flags:evaluate",
		"flags:sync",
		"flags:write",
		"projects:read",
		"flags:read",
	}
	all := backend
	all.Scopes = []events.Scope{
		events.ProjectsWrite,
		events.FlagsRead,
		events.FlagsEvaluate,
		events.FlagsSync,
		events.FlagsWrite,
		events.ProjectsRead,
	}
	when(t, given, create).then(all)

	when(t, given, CreateClient{TenantRef: TenantRef{"t"}, ID: "c"}).refused(Invalid, "name", "scopes")
	create.Name, create.Scopes = string(make([]rune, 201)), []string{"flags:read", "flags:delete", "", "FLAGS:READ"}
	when(t, given, create).refused(Invalid, "name", "scopes[1]", "scopes[2]", "scopes[3]")
}

func TestATenantHasAtMostAHundredClients(t *testing.T) {
	given := []events.Fact{acme}
	for i := range 100 {
		client := backend
		client.ClientID = fmt.Sprint("c", i)
		given = append(given, client)
	}
	create := CreateClient{
		TenantRef:  TenantRef{"t"},
		ID:         "c",
		Name:       "Backend",
		Scopes:     []string{"flags:read"},
		SecretHash: []byte("h"),
	}
	when(t, given, create).refused(Conflict)
	when(t, append(given, events.OAuthClientDeleted{ClientID: "c7"}), create).then(backend)
}

func TestRotateSecret(t *testing.T) {
	given := []events.Fact{acme, backend}
	rotate := RotateSecret{ClientRef: clientRef, SecretHash: []byte("i"), Now: noon}
	rotated := events.OAuthSecretRotated{ClientID: "c", SecretHash: []byte("i"), PreviousUntil: noon.Add(24 * time.Hour)}
	when(t, given, rotate).then(rotated)
	when(t, append(given, rotated), rotate).then(rotated)
	when(t, given, RotateSecret{ClientRef: strangeRef, Now: noon}).refused(NotFound)
	when(t, append(given, events.OAuthClientDeleted{ClientID: "c"}), rotate).refused(NotFound)
	when(t, append(given, events.TenantDeleted{}), rotate).refused(NotFound)

	for range state.MaxPreviousSecrets {
		given = append(given, rotated)
	}
	when(t, given, rotate).refused(Conflict)
	rotate.Now = noon.Add(24 * time.Hour)
	when(
		t,
		given,
		rotate,
	).then(events.OAuthSecretRotated{ClientID: "c", SecretHash: []byte("i"), PreviousUntil: noon.Add(48 * time.Hour)})
}

func TestOldSecretsDoNotAddUp(t *testing.T) {
	given := []events.Fact{acme, backend}
	sizes := []int{}
	for day := range 3 * state.MaxPreviousSecrets {
		tenant := stateOf[state.Tenant](given)
		sizes = append(sizes, tenant.Size())
		given = append(given, events.OAuthSecretRotated{ClientID: "c", PreviousUntil: noon.AddDate(0, 0, day)})
	}
	for i := range state.MaxPreviousSecrets {
		if sizes[i] >= sizes[i+1] {
			t.Errorf("the state takes %d bytes after %d rotations, %d after one more", sizes[i], i, sizes[i+1])
		}
	}
	if last := sizes[len(sizes)-1]; last != sizes[state.MaxPreviousSecrets] {
		t.Errorf("the state takes %d bytes after %d rotations, %d after many more", sizes[state.MaxPreviousSecrets], state.MaxPreviousSecrets, last)
	}
}

func TestDeleteClient(t *testing.T) {
	deleted := events.OAuthClientDeleted{ClientID: "c"}
	when(t, []events.Fact{acme, backend}, DeleteClient{clientRef}).then(deleted)
	when(t, []events.Fact{acme, backend}, DeleteClient{strangeRef}).refused(NotFound)
	when(t, []events.Fact{acme, backend, deleted}, DeleteClient{clientRef}).refused(NotFound)
	when(t, nil, DeleteClient{clientRef}).refused(NotFound)
}

func TestNewSecret(t *testing.T) {
	secret, hash := NewSecret()
	if bits, err := base64.RawURLEncoding.DecodeString(secret); err != nil || len(bits) != 32 {
		t.Errorf("a secret of %d bytes, %v", len(bits), err)
	}
	if want := sha256.Sum256([]byte(secret)); string(hash) != string(want[:]) {
		t.Error("the hash is another's")
	}
	if other, _ := NewSecret(); other == secret {
		t.Error("two secrets are the same")
	}
}
