package local

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"flagledger/commands"
)

const (
	keyBits     = 2048
	reloadEvery = 5 * time.Second // at most, however many unknown key ids come in
	reloadTakes = 5 * time.Second // at most
)

// keys are the signing keys of all nodes, as they were last read. Readers take no lock.
type keys struct {
	load func(context.Context) (*keySet, error)
	now  func() time.Time

	held    atomic.Pointer[keySet]
	loading singleflight.Group
	tried   time.Time // the last reload; it and failed belong to the one that is loading
	failed  error
}

type keySet struct {
	signer  jose.Signer // with the newest
	verify  map[string]*rsa.PublicKey
	publics jose.JSONWebKeySet
}

// find gives the public key of that id, nil where there is none. It reads the keys again for an id that it does not know, since another
// node may have made it.
func (k *keys) find(ctx context.Context, kid string) (*rsa.PublicKey, error) {
	if key := k.held.Load().verify[kid]; key != nil {
		return key, nil
	}
	// Whoever asks first loads for all, so the load must not end with that caller's context.
	loaded := k.loading.DoChan("", func() (any, error) { return nil, k.reload(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
		return nil, trouble("read the signing keys", ctx.Err())
	case r := <-loaded:
		if key := k.held.Load().verify[kid]; key != nil || r.Err == nil {
			return key, nil
		}
		return nil, r.Err
	}
}

func (k *keys) reload(ctx context.Context) error {
	now := k.now()
	if since := now.Sub(k.tried); since >= 0 && since < reloadEvery {
		return k.failed
	}
	ctx, cancel := context.WithTimeout(ctx, reloadTakes)
	defer cancel()
	set, err := k.load(ctx)
	if err == nil && set.signer == nil {
		err = &commands.Error{Detail: "the signing keys are gone"}
	}
	if k.tried, k.failed = now, err; err == nil {
		k.held.Store(set)
	}
	return err
}

// readKeys reads all keys, the newest first.
func readKeys(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}) (*keySet, error) {
	rows, err := db.Query(ctx, `select kid, private_key from keep.signing_keys order by created_at desc, kid`)
	if err != nil {
		return nil, trouble("read the signing keys", err)
	}
	defer rows.Close()
	set := &keySet{verify: map[string]*rsa.PublicKey{}}
	for rows.Next() {
		var kid string
		var der []byte
		if err := rows.Scan(&kid, &der); err != nil {
			return nil, trouble("read the signing keys", err)
		}
		if err := set.add(kid, der); err != nil {
			return nil, &commands.Error{Detail: "read the signing keys", Err: fmt.Errorf("key %s: %w", kid, err)}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, trouble("read the signing keys", err)
	}
	return set, nil
}

func (s *keySet) add(kid string, der []byte) error {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return errors.New("not in PKCS #8 form") // the cause might tell of the key
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return fmt.Errorf("a %T, not an RSA key", parsed)
	}
	if s.signer == nil {
		s.signer, err = jose.NewSigner(
			jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, (&jose.SignerOptions{}).WithType("JWT"))
		if err != nil {
			return err
		}
	}
	s.verify[kid] = &key.PublicKey
	s.publics.Keys = append(s.publics.Keys, jose.JSONWebKey{Key: &key.PublicKey, KeyID: kid, Algorithm: string(algorithm), Use: "sig"})
	return nil
}

// firstKeys reads the keys and makes one where there is none. Nodes that start at once make one between them.
func firstKeys(ctx context.Context, pool *pgxpool.Pool, now time.Time) (*keySet, error) {
	set, err := readKeys(ctx, pool)
	if err != nil || set.signer != nil {
		return set, err
	}
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `lock table keep.signing_keys in share row exclusive mode`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			insert into keep.signing_keys (kid, private_key, created_at)
			select $1::text, $2::bytea, $3::timestamptz where not exists (select from keep.signing_keys)`, uuid.NewString(), der, now)
		return err
	})
	if err != nil {
		return nil, trouble("make a signing key", err)
	}
	return readKeys(ctx, pool)
}
