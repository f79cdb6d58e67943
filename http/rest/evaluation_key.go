package rest

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot"
)

// never is the end of keys that do not expire.
var never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// keyScopes are what an evaluation key allows. One of a browser never allows flags:sync, which no access with
// BrowserKeys needs.
var keyScopes = []events.Scope{events.FlagsEvaluate, events.FlagsSync}

func unknownKey() *Problem {
	return NewProblem(http.StatusUnauthorized, "the evaluation key is unknown or has been deleted")
}

// authenticateKey finds the evaluation key that a caller sent. It asks no database.
func (a *Core) authenticateKey(text string) (*Credential, error) {
	return a.credentialOfKey(hash(text))
}

// credentialOfKey returns the credential of an evaluation key by the SHA-256 of the key as sent.
func (a *Core) credentialOfKey(hash [sha256.Size]byte) (*Credential, error) {
	key, ok := a.Live.EvaluationKey(hash)
	switch {
	case !ok && a.Incomplete != nil && a.Incomplete():
		return nil, NewProblem(http.StatusServiceUnavailable, "the key is not known here yet")
	case !ok:
		return nil, unknownKey()
	}
	until := endOf(key, hash)
	if !a.Now().Before(until) {
		return nil, NewProblem(http.StatusUnauthorized, "the evaluation key has expired")
	}
	if c, ok := a.Verifier.verified.Load(hash); ok && c.EvaluationKey() == key {
		return c, nil
	}
	c := &Credential{
		Machine: &Machine{ClientID: key.KeyID, TenantID: key.TenantID, scopes: keyScopes, key: key, keyHash: hash},
		Expires: until,
	}
	a.Verifier.cache(hash, c)
	return c, nil
}

// endOf returns when a key stops working for a caller who sent the key with this hash.
func endOf(key *snapshot.EvaluationKey, hash [sha256.Size]byte) time.Time {
	if until := key.ValidUntil(hash); !until.IsZero() {
		return until
	}
	return never
}

// checkOrigin lets a web page of an origin that the key allows read the answer, and refuses any other page. A call
// without an origin, such as an app's, is allowed.
func checkOrigin(answer http.Header, r *http.Request, key *snapshot.EvaluationKey) error {
	answer.Add("Vary", "Origin")
	sent := r.Header["Origin"]
	if len(sent) == 0 {
		return nil
	}
	if len(sent) > 1 || !key.AllowsOrigin(sent[0]) {
		answer.Del("Access-Control-Allow-Origin") // of the dashboard's origins
		return NewProblem(http.StatusForbidden, "the evaluation key does not allow web pages of this origin")
	}
	answer.Set("Access-Control-Allow-Origin", sent[0])
	answer.Set("Access-Control-Expose-Headers", strings.Join(exposedHeaders, ", "))
	return nil
}

// showInvalid lets any web page read that its key is invalid: it must not take that for an outage.
func showInvalid(answer http.Header, refusal error) {
	problem, ok := errors.AsType[*Problem](refusal)
	if ok && problem.Status == http.StatusUnauthorized && answer.Get("Access-Control-Allow-Origin") == "" {
		answer.Set("Access-Control-Allow-Origin", "*")
	}
}
