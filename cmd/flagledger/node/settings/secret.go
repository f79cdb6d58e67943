package settings

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"flagledger/commands/keep/keys"
)

// OpenSecret returns the configured secret, or that of the file FLAGLEDGER_DATA/secret, which it creates if necessary.
func (c Config) OpenSecret(log *slog.Logger) (keys.Secret, error) {
	if c.Secret != "" {
		secret, err := parseSecret("FLAGLEDGER_SECRET", c.Secret)
		if c.Environment == "production" {
			secret = secret.OnlyDecrypt(guessable)
		}
		return secret, err
	}
	if err := os.MkdirAll(c.Data, 0o755); err != nil { //nolint:gosec // see embedded: another user runs Postgres
		return keys.Secret{}, fmt.Errorf("FLAGLEDGER_DATA: %w", err)
	}
	path := filepath.Join(c.Data, "secret")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeSecret(path); err != nil {
			return keys.Secret{}, fmt.Errorf("FLAGLEDGER_SECRET is not set, and its file cannot be made: %w", err)
		}
		log.Info("a secret has been made, since FLAGLEDGER_SECRET is not set", "file", path)
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return keys.Secret{}, fmt.Errorf("FLAGLEDGER_SECRET is not set, and its file cannot be read: %w", err)
	}
	return parseSecret(path, string(text))
}

func (c Config) checkSecret() error {
	if c.Secret == "" {
		return nil
	}
	_, err := parseSecret("FLAGLEDGER_SECRET", c.Secret)
	return err
}

// parseSecret parses a secret. The error names its source.
func parseSecret(from, text string) (keys.Secret, error) {
	s, err := keys.ParseSecret(text)
	if err != nil {
		return s, fmt.Errorf("%s: each value %w", from, err)
	}
	return s, nil
}

// makeSecret creates a file with a random secret that only its owner can read. If another process creates it at the
// same time, that file stays.
func makeSecret(path string) error {
	value := make([]byte, 32)
	if _, err := rand.Read(value); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "secret-") // readable only for its owner
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(hex.EncodeToString(value) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); !errors.Is(err, fs.ErrExist) { // whole or not at all
		return err
	}
	return nil
}
