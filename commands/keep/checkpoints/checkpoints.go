// Package checkpoints stores the key that signs checkpoints of the tenants' audit trails, and the signed checkpoints.
package checkpoints

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/commands"
	"flagledger/commands/keep"
	"flagledger/commands/keep/keys"
	"flagledger/events/proof"
)

// Reader reads the checkpoints in a database, and the key that verifies them. Errors are *commands.Error, Unavailable
// if the database cannot be reached.
type Reader struct{ db *pgxpool.Pool }

// NewReader returns the reader of a database.
func NewReader(db *pgxpool.Pool) Reader { return Reader{db} }

// Checkpoints reads checkpoints and signs new ones.
type Checkpoints struct {
	Reader
	box keys.Box
}

// New returns the checkpoints in a database. The secret encrypts the key.
func New(db *pgxpool.Pool, secret keys.Secret) (*Checkpoints, error) {
	box, err := secret.Box("audit key")
	return &Checkpoints{Reader{db}, box}, err
}

// StoredKey returns the public key that verifies checkpoints; "" if no server has created one.
func (r Reader) StoredKey(ctx context.Context) (verifier string, err error) {
	err = r.db.QueryRow(ctx, `select verifier from keep.audit_key`).Scan(&verifier)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return verifier, databaseError(err)
}

// keyName is the name of the key in signatures.
const keyName = "flagledger"

// VerifierKey returns the public key that verifies checkpoints. The first call creates the key.
func (c *Checkpoints) VerifierKey(ctx context.Context) (string, error) {
	verifier, _, err := c.key(ctx)
	return verifier, err
}

func (c *Checkpoints) key(ctx context.Context) (verifier string, signer note.Signer, err error) {
	const query = `select verifier, private_key from keep.audit_key`
	var encrypted []byte
	err = c.db.QueryRow(ctx, query).Scan(&verifier, &encrypted)
	if errors.Is(err, pgx.ErrNoRows) {
		private, public, err := note.GenerateKey(rand.Reader, keyName)
		if err != nil {
			return "", nil, err
		}
		if _, err := c.db.Exec(
			ctx, `insert into keep.audit_key (verifier, private_key) values ($1, $2) on conflict do nothing`, public,
			c.encrypt(public, private),
		); err != nil {
			return "", nil, databaseError(err)
		}
		if err := c.db.QueryRow(ctx, query).Scan(&verifier, &encrypted); err != nil {
			return "", nil, databaseError(err)
		}
	} else if err != nil {
		return "", nil, databaseError(err)
	}
	private, current, ok := c.box.Decrypt(encrypted, []byte(verifier))
	if !ok {
		return "", nil, &commands.Error{
			Detail: "FLAGLEDGER_SECRET is not the one that the audit key in the database is encrypted under",
		}
	}
	if !current {
		if _, err := c.db.Exec(
			ctx, `update keep.audit_key set private_key = $1 where private_key = $2`, c.encrypt(verifier, string(private)),
			encrypted,
		); err != nil {
			return "", nil, databaseError(err)
		}
	}
	if signer, err = note.NewSigner(string(private)); err != nil {
		return "", nil, &commands.Error{Detail: "the audit key cannot be read"} // the cause might reveal the key
	}
	return verifier, signer, nil
}

func (c *Checkpoints) encrypt(verifier, private string) []byte {
	return c.box.Encrypt([]byte(private), []byte(verifier))
}

// Tree is the Merkle tree of a tenant's trail at its current or a smaller size.
type Tree interface {
	Root(ctx context.Context, size int64) (tlog.Hash, error)
}

// SignCurrent signs a checkpoint of a tenant's current trail. It returns ErrAltered if the trail does not extend the
// largest earlier checkpoint.
func (c *Checkpoints) SignCurrent(
	ctx context.Context, tenantID string, current func() (tree Tree, size int64, err error),
) ([]byte, error) {
	latest, err := c.Latest(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	tree, size, err := current() // after Latest, so that it is not smaller
	if err != nil {
		return nil, err
	}
	if latest.Size > size {
		return nil, ErrAltered
	}
	if root, err := tree.Root(ctx, latest.Size); err != nil {
		return nil, err
	} else if root != latest.Root {
		return nil, ErrAltered
	}
	root, err := tree.Root(ctx, size)
	if err != nil {
		return nil, err
	}
	return c.Sign(ctx, proof.Checkpoint{TenantID: tenantID, Size: size, Root: root})
}

// Sign signs and stores a checkpoint. It returns Conflict if a different root was signed for the size.
func (c *Checkpoints) Sign(ctx context.Context, p proof.Checkpoint) ([]byte, error) {
	_, signer, err := c.key(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.db.Exec(
		ctx, `insert into keep.audit_checkpoints (tenant_id, size, root) values ($1, $2, $3) on conflict do nothing`,
		p.TenantID, p.Size, p.Root[:],
	); err != nil {
		return nil, databaseError(err)
	}
	var root []byte
	if err := c.db.QueryRow(ctx, `select root from keep.audit_checkpoints where tenant_id = $1 and size = $2`, p.TenantID, p.Size).
		Scan(&root); err != nil {
		return nil, databaseError(err)
	}
	if string(root) != string(p.Root[:]) {
		return nil, ErrAltered
	}
	return proof.Sign(p, signer)
}

// ErrAltered reports that a trail no longer matches a signed checkpoint.
var ErrAltered = &commands.Error{
	Kind: commands.Conflict,
	Detail: "the trail is not the one for which a checkpoint was signed before: flagledger verify tells where it was " +
		"altered",
}

// Latest returns the largest checkpoint of a tenant, or one of size 0.
func (r Reader) Latest(ctx context.Context, tenantID string) (proof.Checkpoint, error) {
	list, err := r.list(ctx, `where tenant_id = $1 order by size desc limit 1`, tenantID)
	if err != nil || len(list) == 0 {
		return proof.Checkpoint{TenantID: tenantID, Root: new(proof.CompactRange).Root()}, err
	}
	return list[0], nil
}

// All returns the checkpoints of a tenant, smallest first.
func (r Reader) All(ctx context.Context, tenantID string) ([]proof.Checkpoint, error) {
	return r.list(ctx, `where tenant_id = $1 order by size`, tenantID)
}

func (r Reader) list(ctx context.Context, which, tenantID string) ([]proof.Checkpoint, error) {
	rows, err := r.db.Query(ctx, `select tenant_id, size, root from keep.audit_checkpoints `+which, tenantID)
	if err != nil {
		return nil, databaseError(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p proof.Checkpoint, err error) {
		var root []byte
		err = row.Scan(&p.TenantID, &p.Size, &root)
		copy(p.Root[:], root)
		return p, err
	})
	return list, databaseError(err)
}

func databaseError(err error) error {
	return keep.DatabaseError("checkpoints of the audit trail cannot be reached at this moment", err)
}
