// Package keys signs and verifies the tokens of the service. All nodes share its keys, which are encrypted in the
// database.
//
// Each key signs for a month. It is published a day before, and stored until its tokens have long expired.
package keys

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"flagledger/commands"
	"flagledger/commands/keep"
)

const (
	minReloadInterval = 5 * time.Second // even for unknown key ids
	reloadTimeout     = 5 * time.Second
)

// Keys caches the signing keys of all nodes. Readers take no lock.
type Keys struct {
	pool *pgxpool.Pool
	box  Box      // encrypts private keys
	own  []ownKey // the current one first
	load func(context.Context) (*set, error)
	now  func() time.Time
	log  *slog.Logger

	copyFile        string // of the public keys; may be empty
	storedEncrypted bool   // this node has encrypted the unencrypted keys in the database; only rotate uses it

	held    atomic.Pointer[set]
	loading singleflight.Group
	tried   time.Time // the last reload; only the loading goroutine uses it and failed
	failed  error
}

// set is a snapshot of all keys.
type set struct {
	keys    []*key // newest first
	byID    map[string]*key
	publics jose.JSONWebKeySet
}

type key struct {
	id        string
	signsFrom time.Time // until the next key signs
	public    *rsa.PublicKey
	private   *rsa.PrivateKey // nil for a key from the copy
}

// Open reads the keys, and creates the first one if there is none. The private keys are encrypted under the secret;
// Open fails if a different secret encrypted one.
//
// copyFile, unless empty, holds a copy of the public keys, readable only by its owner. It verifies tokens while the
// database cannot be reached; Sign is then Unavailable until Run has read the keys.
func Open(
	ctx context.Context, pool *pgxpool.Pool, secret Secret, copyFile string, now func() time.Time, log *slog.Logger,
) (*Keys, error) {
	k := &Keys{pool: pool, copyFile: copyFile, now: now, log: log}
	k.load = k.fetch
	var err error
	if k.box, err = secret.Box("signing keys"); err != nil {
		return nil, err
	}
	if k.own, err = secret.ownKeys(); err != nil {
		return nil, err
	}
	err = k.rotate(ctx)
	if err == nil {
		return k, nil
	}
	if k.held.Load() != nil {
		k.log.Warn(notRotated, "retry_in", rotateInterval, "err", err)
		return k, nil
	}
	if refusal, ok := errors.AsType[*commands.Error](err); copyFile == "" || !ok || refusal.Kind != commands.Unavailable {
		return nil, err
	}
	copied, copyErr := readCopy(copyFile)
	if copyErr != nil {
		return nil, errors.Join(err, copyErr)
	}
	k.log.Warn("the signing keys cannot be read: tokens are verified with the copy of the public ones", "err", err)
	k.held.Store(copied)
	return k, nil
}

// JWKS returns the cached public keys (RFC 7517), newest first.
func (k *Keys) JWKS() jose.JSONWebKeySet { return k.held.Load().publics }

// Signs reports whether tokens can be signed: not while only the copy of the public keys is known.
func (k *Keys) Signs() bool { return k.signer().private != nil }

// signer returns the newest key that may sign.
func (k *Keys) signer() *key {
	keys, now := k.held.Load().keys, k.now()
	for _, candidate := range keys {
		if !now.Before(candidate.signsFrom) {
			return candidate
		}
	}
	return keys[len(keys)-1] // the clock was set back
}

// find returns the key with an id, or nil. For an unknown id it reads the keys again, because another node may have
// created it.
func (k *Keys) find(ctx context.Context, id string) (*key, error) {
	if found := k.held.Load().byID[id]; found != nil {
		return found, nil
	}
	// One caller loads for all waiting ones, so the load must not end with its context.
	loaded := k.loading.DoChan("", func() (any, error) { return nil, k.reload(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
		return nil, databaseError(ctx.Err())
	case r := <-loaded:
		if found := k.held.Load().byID[id]; found != nil || r.Err == nil {
			return found, nil
		}
		return nil, r.Err
	}
}

func (k *Keys) reload(ctx context.Context) error {
	now := k.now()
	if since := now.Sub(k.tried); since >= 0 && since < minReloadInterval {
		return k.failed
	}
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	s, err := k.load(ctx)
	if err == nil && len(s.keys) == 0 {
		err = &commands.Error{Detail: "the signing keys are gone"}
	}
	if k.tried, k.failed = now, err; err == nil {
		k.hold(s)
	}
	return err
}

// fetch reads all keys.
func (k *Keys) fetch(ctx context.Context) (*set, error) {
	stored, err := k.stored(ctx)
	if err != nil {
		return nil, err
	}
	s := &set{byID: map[string]*key{}}
	for _, r := range stored {
		next := &key{id: r.KID, signsFrom: r.SignsFrom}
		der, _, err := k.decrypt(r)
		if err == nil {
			next.private, err = parse(der)
		}
		if err != nil {
			return nil, unreadable(next.id, err)
		}
		next.public = &next.private.PublicKey
		s.add(next)
	}
	return s, nil
}

func (s *set) add(next *key) {
	s.keys = append(s.keys, next)
	s.byID[next.id] = next
	s.publics.Keys = append(s.publics.Keys,
		jose.JSONWebKey{Key: next.public, KeyID: next.id, Algorithm: string(algorithm), Use: "sig"})
}

func parse(der []byte) (*rsa.PrivateKey, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("not in PKCS #8 form") // the cause might reveal the key
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a %T, not an RSA key", parsed)
	}
	return private, nil
}

func databaseError(err error) error {
	return keep.DatabaseError("the signing keys cannot be read or written at this moment", err)
}
