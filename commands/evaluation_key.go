package commands

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

const (
	maxEvaluationKeys = 100
	maxOrigins        = 20
	maxOrigin         = 300
)

var keyPrefixes = map[events.KeyKind]string{events.BrowserKey: "pk_", events.ServerKey: "sk_"}

// IsEvaluationKey reports whether a text that a caller sent as its token is an evaluation key, valid or not.
func IsEvaluationKey(text string) bool {
	return strings.HasPrefix(text, keyPrefixes[events.BrowserKey]) ||
		strings.HasPrefix(text, keyPrefixes[events.ServerKey])
}

// KeyText returns the evaluation key of a kind with these random characters.
func KeyText(kind events.KeyKind, random string) string {
	return keyPrefixes[kind] + strings.ToLower(random)
}

// keyMaterial returns what facts hold of an evaluation key.
func keyMaterial(kind events.KeyKind, random, signingID string) events.KeyMaterial {
	text := KeyText(kind, random)
	if kind == events.BrowserKey {
		return events.KeyMaterial{Key: text, SigningID: signingID}
	}
	sum := sha256.Sum256([]byte(text))
	return events.KeyMaterial{Hash: sum[:]}
}

// CreateEvaluationKey adds an evaluation key to a tenant.
type CreateEvaluationKey struct {
	TenantRef
	ID          string // new
	Name        string
	Kind        events.KeyKind
	Environment string // its name
	Origins     []string
	Edge        bool
	ExpiresAt   time.Time // zero for never
	Random      string    // of rand.Text
	SigningID   string    // new, of a key that takes signed contexts
	Now         time.Time
}

func (c CreateEvaluationKey) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	CheckText(wrong, "name", c.Name, 1, maxName)
	wrong.Check(keyPrefixes[c.Kind] != "", "kind", "must be browser or server")
	environment := t.Environment(c.Environment)
	wrong.Check(environment != nil, "environment", "the tenant has no environment %q", c.Environment)
	checkOrigins(wrong, c.Kind, c.Origins)
	wrong.Check(c.Kind != events.ServerKey || c.SigningID == "", "signed", "is only for browser keys")
	wrong.Check(c.Kind != events.BrowserKey || !c.Edge, "edge", "is only for server keys")
	checkExpiry(wrong, c.ExpiresAt, c.Now)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if len(t.EvaluationKeys) >= maxEvaluationKeys {
		return nil, Refuse(Conflict, "the tenant has %d evaluation keys, which is the limit", maxEvaluationKeys)
	}
	return []events.Fact{events.EvaluationKeyAdded{
		KeyID: c.ID, Name: c.Name, Kind: c.Kind, Environment: *environment, Origins: c.Origins, Edge: c.Edge,
		ExpiresAt: c.ExpiresAt, KeyMaterial: keyMaterial(c.Kind, c.Random, c.SigningID),
	}}, nil
}

func checkExpiry(wrong FieldErrors, at, now time.Time) {
	wrong.Check(at.IsZero() || at.After(now), "expiresAt", "must be in the future")
}

// The forms of origins: https with an optional *. for subdomains and an optional port, and any port of localhost.
var originPattern = regexp.MustCompile(
	`^(https://(\*\.[a-z0-9-]+\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:[1-9][0-9]{0,4})?|http://localhost(:[1-9][0-9]{0,4}|:\*)?)$`)

func checkOrigins(wrong FieldErrors, kind events.KeyKind, origins []string) {
	wrong.Check(kind != events.ServerKey || len(origins) == 0, "origins", "are only for browser keys")
	if len(origins) > maxOrigins {
		wrong.Check(false, "origins", "must be at most %d", maxOrigins)
		return
	}
	for i, origin := range origins {
		field := "origins[" + strconv.Itoa(i) + "]"
		good := originPattern.MatchString(origin) && len(origin) <= maxOrigin && !strings.HasSuffix(origin, ":443") &&
			validPort(origin)
		wrong.Check(good, field, "must be an origin as browsers send it, in small letters and without a path: "+
			"https://app.example.com, https://*.example.com or http://localhost:*")
		wrong.Check(!good || slices.Index(origins, origin) == i, field, "is there already")
	}
}

// validPort reports whether the port of an origin that matches originPattern is one, if it has a port.
func validPort(origin string) bool {
	_, rest, _ := strings.Cut(origin, "://")
	_, port, given := strings.Cut(rest, ":")
	_, err := strconv.ParseUint(port, 10, 16)
	return !given || port == "*" || err == nil
}

// EvaluationKeyRef identifies an evaluation key of a tenant.
type EvaluationKeyRef struct {
	TenantRef
	ID string
}

// find returns the key, or NotFound if the tenant has no such key.
func (r EvaluationKeyRef) find(t state.Tenant) (state.EvaluationKey, error) {
	if err := r.admit(t); err != nil {
		return state.EvaluationKey{}, err
	}
	key, ok := t.EvaluationKeys[r.ID]
	if !ok {
		return key, Refuse(NotFound, "no evaluation key has the id %q", r.ID)
	}
	return key, nil
}

// ChangeEvaluationKey changes fields of an evaluation key; nil leaves one unchanged.
type ChangeEvaluationKey struct {
	EvaluationKeyRef
	Name      *string
	Origins   *[]string
	ExpiresAt *time.Time // zero for never
	Now       time.Time
}

func (c ChangeEvaluationKey) Decide(t state.Tenant) ([]events.Fact, error) {
	key, err := c.find(t)
	if err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	fact := events.EvaluationKeyChanged{
		KeyID: c.ID, Environment: key.Environment, Name: changed(key.Name, c.Name, equal),
	}
	if c.Name != nil {
		CheckText(wrong, "name", *c.Name, 1, maxName)
	}
	if c.Origins != nil {
		checkOrigins(wrong, key.Kind, *c.Origins)
		if !slices.Equal(*c.Origins, key.Origins) {
			fact.Origins = &events.Change[[]string]{From: key.Origins, To: *c.Origins}
		}
	}
	if c.ExpiresAt != nil {
		if !c.ExpiresAt.Equal(key.ExpiresAt) {
			checkExpiry(wrong, *c.ExpiresAt, c.Now)
			fact.ExpiresAt = &events.Change[*time.Time]{From: timeOrNil(key.ExpiresAt), To: timeOrNil(*c.ExpiresAt)}
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if fact.Name == nil && fact.Origins == nil && fact.ExpiresAt == nil {
		return nil, nil
	}
	return []events.Fact{fact}, nil
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// RotateEvaluationKey gives an evaluation key a new key or, if it is signed, a new signing secret. The previous one
// stays valid for SecretOverlap, unless EndNow ends it and all earlier ones.
type RotateEvaluationKey struct {
	EvaluationKeyRef
	Random    string // of rand.Text
	SigningID string // new, for a key that takes signed contexts
	EndNow    bool
	Now       time.Time
}

func (c RotateEvaluationKey) Decide(t state.Tenant) ([]events.Fact, error) {
	key, err := c.find(t)
	if err != nil {
		return nil, err
	}
	if !key.ExpiresAt.IsZero() && !key.ExpiresAt.After(c.Now) {
		return nil, Refuse(Conflict, "the key has expired, and so would its new one: change expiresAt first")
	}
	valid := 0
	for _, p := range key.Previous {
		if c.Now.Before(p.Until) {
			valid++
		}
	}
	if !c.EndNow && valid >= state.MaxPreviousSecrets {
		return nil, Refuse(Conflict,
			"the key has %d earlier keys or secrets that are still valid, which is the limit: wait until one expires, %v after "+
				"its rotation, or send endNow",
			valid, SecretOverlap)
	}
	until := c.Now.UTC().Truncate(time.Millisecond)
	if !c.EndNow {
		until = until.Add(SecretOverlap)
	}
	m := keyMaterial(key.Kind, c.Random, "")
	if key.Signed() { // its signing secret is replaced, and the key itself is public
		m = events.KeyMaterial{Key: key.Key, SigningID: c.SigningID}
	}
	return []events.Fact{events.EvaluationKeyRotated{
		KeyID: c.ID, Environment: key.Environment, KeyMaterial: m, PreviousUntil: until,
	}}, nil
}

// RemoveEvaluationKey deletes an evaluation key. It is refused from now on.
type RemoveEvaluationKey struct{ EvaluationKeyRef }

func (c RemoveEvaluationKey) Decide(t state.Tenant) ([]events.Fact, error) {
	key, err := c.find(t)
	if err != nil {
		return nil, err
	}
	return []events.Fact{events.EvaluationKeyRemoved{KeyID: c.ID, Environment: key.Environment}}, nil
}
