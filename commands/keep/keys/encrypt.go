package keys

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
)

// encryptedMark is the first byte of an encrypted private key. An unencrypted one begins with 0x30, as PKCS #8 does.
const encryptedMark = 1

// errSecret reports that keys were encrypted under a different secret. They stay, because other nodes may verify
// tokens with them.
var errSecret = errors.New(
	"the signing keys in the database are encrypted under a different FLAGLEDGER_SECRET; give all nodes the " +
		"same, and after a change the old one too: new,old",
)

// storedKey is a row of the signing keys.
type storedKey struct {
	KID        string
	SignsFrom  time.Time
	PrivateKey []byte
}

// stored reads the rows of all keys, newest first.
func (k *Keys) stored(ctx context.Context) ([]storedKey, error) {
	rows, err := k.pool.Query(ctx,
		`select kid, signs_from, private_key from keep.signing_keys order by signs_from desc, kid`)
	if err != nil {
		return nil, databaseError(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[storedKey])
	return list, databaseError(err)
}

func (k *Keys) encrypt(kid string, der []byte) []byte {
	return append([]byte{encryptedMark}, k.box.Encrypt(der, []byte(kid))...)
}

// decrypt decrypts a stored private key. current is false if it should be encrypted again.
func (k *Keys) decrypt(stored storedKey) (der []byte, current bool, err error) {
	if len(stored.PrivateKey) == 0 || stored.PrivateKey[0] != encryptedMark {
		return stored.PrivateKey, false, nil
	}
	der, current, ok := k.box.Decrypt(stored.PrivateKey[1:], []byte(stored.KID))
	if !ok {
		return nil, false, errSecret
	}
	return der, current, nil
}

// encryptStored encrypts stored keys that are unencrypted, or encrypted under an older value of the secret. It is safe
// to run on several nodes.
func (k *Keys) encryptStored(ctx context.Context) error {
	list, err := k.stored(ctx)
	if err != nil {
		return err
	}
	for _, stored := range list {
		der, current, err := k.decrypt(stored)
		if err != nil {
			return unreadable(stored.KID, err)
		}
		if current {
			continue
		}
		_, err = k.pool.Exec(ctx, `update keep.signing_keys set private_key = $2 where kid = $1 and private_key = $3`,
			stored.KID, k.encrypt(stored.KID, der), stored.PrivateKey)
		if err != nil {
			return databaseError(err)
		}
		k.log.Info("a signing key has been encrypted under FLAGLEDGER_SECRET", "kid", stored.KID)
	}
	return nil
}

func unreadable(kid string, err error) error {
	return &commands.Error{Detail: "read the signing key " + kid, Err: err}
}
