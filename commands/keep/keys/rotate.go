package keys

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/retry"
)

const (
	keyBits        = 2048
	rotateInterval = 5 * time.Minute
	copyRetry      = time.Second
	// signsFor is how long a key signs.
	signsFor = 30 * 24 * time.Hour
	// publishedBefore is the time between publishing a key and signing with it: long enough for all nodes and for
	// clients that cache the JWKS.
	publishedBefore = 24 * time.Hour
	// keptFor is how long a key is stored after the next one began to sign.
	keptFor = TokenTTL + 24*time.Hour
)

const notRotated = "the signing keys were not rotated; the known ones stay in use"

// Run rotates the keys until ctx ends. While the database cannot be reached, the known keys stay in use.
func (k *Keys) Run(ctx context.Context) {
	for !k.Signs() && k.rotate(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(copyRetry):
		}
	}
	retry.Every(ctx, rotateInterval, func() {
		if err := k.rotate(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn(notRotated, "retry_in", rotateInterval, "err", err)
		}
	})
}

// rotate reads the keys, publishes the next one if it is due, and deletes those whose tokens have all expired. Nodes
// that run it together publish one key.
func (k *Keys) rotate(ctx context.Context) error {
	if !k.storedEncrypted {
		if err := k.encryptStored(ctx); err != nil {
			return err
		}
		k.storedEncrypted = true
	}
	now := k.now()
	s, err := k.load(ctx)
	if err != nil {
		return err
	}
	if len(s.keys) > 0 {
		k.hold(s)
	}
	changed := false
	if from, due := s.next(now); due {
		if err := k.publish(ctx, s, from, now); err != nil {
			return err
		}
		changed = true
	}
	for _, id := range s.expired(now) {
		if _, err := k.pool.Exec(ctx, `delete from keep.signing_keys where kid = $1`, id); err != nil {
			return databaseError(err)
		}
		k.log.Info("a signing key has been removed", "kid", id)
		changed = true
	}
	if !changed {
		return nil
	}
	if s, err = k.load(ctx); err == nil {
		k.hold(s)
	}
	return err
}

// next returns when the next key begins to sign, and whether it must be published now.
func (s *set) next(now time.Time) (from time.Time, due bool) {
	if len(s.keys) == 0 {
		return now, true
	}
	from, earliest := s.keys[0].signsFrom.Add(signsFor), now.Add(publishedBefore)
	if from.After(earliest) {
		return from, false
	}
	return earliest, true
}

// expired returns the ids of the keys whose tokens have all expired.
func (s *set) expired(now time.Time) (ids []string) {
	for i := 1; i < len(s.keys); i++ {
		if !now.Before(s.keys[i-1].signsFrom.Add(keptFor)) {
			ids = append(ids, s.keys[i].id)
		}
	}
	return ids
}

// publish adds a key, unless another node has done so since the keys were read.
func (k *Keys) publish(ctx context.Context, s *set, from, now time.Time) error {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	var newest *time.Time
	if len(s.keys) > 0 {
		newest = &s.keys[0].signsFrom
	}
	id := uuid.NewString()
	var added bool
	err = pgx.BeginFunc(ctx, k.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `lock table keep.signing_keys in share row exclusive mode`); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into keep.signing_keys (kid, private_key, created_at, signs_from)
			select $1::text, $2::bytea, $3::timestamptz, $4::timestamptz
			where (select max(signs_from) from keep.signing_keys) is not distinct from $5::timestamptz`, id, k.encrypt(id, der), now, from, newest)
		added = tag.RowsAffected() > 0
		return err
	})
	if err != nil {
		return databaseError(err)
	}
	if added {
		k.log.Info("a signing key is published", "kid", id, "from", from)
	}
	return nil
}
