// Package keys signs and verifies the tokens of the service. Its keys stand encrypted in the keepings, where all nodes
// share them.
//
// Each key signs for a month. It is published a day before, and kept until the tokens that it signed have long expired.
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
	minReloadInterval = 5 * time.Second // however many unknown key ids come in
	reloadTimeout     = 5 * time.Second
)

// Keys are the signing keys of all nodes, as they were last read. Readers take no lock.
type Keys struct {
	pool *pgxpool.Pool
	box  Box      // that private keys are encrypted with
	own  []ownKey // the current one first
	load func(context.Context) (*set, error)
	now  func() time.Time
	log  *slog.Logger

	copyFile        string // of the public keys; empty for none
	storedEncrypted bool   // this node has encrypted what stood in the database unencrypted; rotate alone uses it

	held    atomic.Pointer[set]
	loading singleflight.Group
	tried   time.Time // the last reload; it and failed belong to the one that is loading
	failed  error
}

// set is all keys at one time.
type set struct {
	keys    []*key // the newest first
	byID    map[string]*key
	publics jose.JSONWebKeySet
}

type key struct {
	id        string
	signsFrom time.Time // until the next one does
	public    *rsa.PublicKey
	private   *rsa.PrivateKey // nil for a key from the copy
}

// Open reads the keys, and makes the first one where there is none: nodes that start at once make one between them. The
// private keys stand in the database encrypted under the secret; it is an error if another secret has encrypted one.
//
// copyFile, unless it is empty, holds a copy of the public keys, which only its owner may read. While the database
// cannot be reached, tokens are verified with the copy, and Sign is Unavailable until Run has read the keys.
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

// JWKS are the public keys that tokens can be verified with (RFC 7517), the newest first, as this node last read them.
func (k *Keys) JWKS() jose.JSONWebKeySet { return k.held.Load().publics }

// Signs reports whether tokens can be signed: not while only the copy of the public keys is known.
func (k *Keys) Signs() bool { return k.signer().private != nil }

// signer is the newest key that signs already.
func (k *Keys) signer() *key {
	keys, now := k.held.Load().keys, k.now()
	for _, candidate := range keys {
		if !now.Before(candidate.signsFrom) {
			return candidate
		}
	}
	return keys[len(keys)-1] // the clock was set back
}

// find gives the key of that id, nil where there is none. It reads the keys again for an id that it does not know,
// since another node may have made it.
func (k *Keys) find(ctx context.Context, id string) (*key, error) {
	if found := k.held.Load().byID[id]; found != nil {
		return found, nil
	}
	// Whoever asks first loads for all, so the load must not end with that caller's context.
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
		return nil, errors.New("not in PKCS #8 form") // the cause might tell of the key
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
