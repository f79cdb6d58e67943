// Package salts stores the salts of private segments. Without its salt, nobody can tell whom a hash in a segment's
// facts stands for.
package salts

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/keep"
	"flagledger/commands/keep/keys"
	"flagledger/events/state"
)

// Salts holds the salts in a database, encrypted under FLAGLEDGER_SECRET. Errors are *commands.Error, Unavailable if
// the database cannot be reached.
type Salts struct {
	db  *pgxpool.Pool
	box keys.Box
}

// New returns the salts in a database.
func New(db *pgxpool.Pool, secret keys.Secret) (*Salts, error) {
	box, err := secret.Box("segment salts")
	return &Salts{db, box}, err
}

// Add stores a new salt for a segment and returns its id. Call it before the fact that names the salt is recorded.
func (s *Salts) Add(ctx context.Context, tenantID, segmentID string) (id string, err error) {
	salt := make([]byte, state.SaltBytes)
	_, _ = rand.Read(salt) // never fails
	id = uuid.NewString()
	_, err = s.db.Exec(ctx,
		`insert into keep.segment_salts (id, tenant_id, segment_id, encrypted) values ($1, $2, $3, $4)`,
		id, tenantID, segmentID, s.box.Encrypt(salt, []byte(id)))
	return id, databaseError(err)
}

// Load returns a salt as it is stored, nil if there is none with the id. A salt that an older value of the secret
// encrypted is stored anew.
func (s *Salts) Load(ctx context.Context, id string) (encrypted []byte, err error) {
	err = s.db.QueryRow(ctx, `select encrypted from keep.segment_salts where id = $1`, id).Scan(&encrypted)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, databaseError(err)
	}
	if salt, current, ok := s.box.Decrypt(encrypted, []byte(id)); ok && !current {
		again := s.box.Encrypt(salt, []byte(id))
		_, err = s.db.Exec(ctx, `update keep.segment_salts set encrypted = $2 where id = $1`, id, again)
		return again, databaseError(err)
	}
	return encrypted, nil
}

// Decrypt decrypts what Load returned, and returns false if another secret encrypted it.
func (s *Salts) Decrypt(id string, encrypted []byte) (salt []byte, ok bool) {
	salt, _, ok = s.box.Decrypt(encrypted, []byte(id))
	return salt, ok
}

// Remove deletes salts of a tenant.
func (s *Salts) Remove(ctx context.Context, tenantID string, ids ...string) error {
	_, err := s.db.Exec(ctx, `delete from keep.segment_salts where tenant_id = $1 and id = any($2)`, tenantID, ids)
	return databaseError(err)
}

// ForgetTenant implements tenants.TenantData.
func (s *Salts) ForgetTenant(ctx context.Context, tenantID string) error {
	_, err := s.db.Exec(ctx, `delete from keep.segment_salts where tenant_id = $1`, tenantID)
	return databaseError(err)
}

func databaseError(err error) error {
	return keep.DatabaseError("the salts of segments cannot be reached", err)
}
