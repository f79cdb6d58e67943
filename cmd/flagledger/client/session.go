package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

// session is a sign-in, as it is stored on disk.
type session struct {
	Server       string `json:"server"`
	Email        string `json:"email"`
	Tenant       string `json:"tenant"`
	Token        string `json:"token"`
	RefreshToken string `json:"refreshToken,omitempty"` // a pasted token has none
}

// sessionFile returns the path of the session, whose folder only its owner can read.
func sessionFile() (string, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(config, "flagledger", "session.json"), nil
}

// loadSession returns the stored session, or an empty one.
func loadSession() (s session, err error) {
	path, err := sessionFile()
	if err != nil {
		return s, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if json.Unmarshal(text, &s) != nil {
		return s, fmt.Errorf("%s is damaged; sign in again with flagledger login", path)
	}
	return s, nil
}

// save replaces the stored session. The caller holds the lock.
func (s session) save() error {
	path, err := sessionFile()
	if err != nil {
		return err
	}
	text, err := json.Marshal(s) //nolint:gosec // the file is for secrets
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, append(text, '\n'), 0o600, renameio.IgnoreUmask())
}

// lockSession waits until no other command changes the stored session.
func lockSession(ctx context.Context) (unlock func(), err error) {
	path, err := sessionFile()
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(folder, 0o700); err != nil { //nolint:gosec // a folder
		return nil, err
	}
	lock := flock.New(filepath.Join(folder, "lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

var errNotSignedIn = errors.New("you are not signed in")

func notSignedIn(server string) error {
	return fmt.Errorf("%w at %s; use flagledger login EMAIL --server %s", errNotSignedIn, server, server)
}

// bearer sends calls with the token of a session. If that is refused, it gets a new token and sends the call again.
type bearer struct{ session session }

// Do implements HttpRequestDoer.
func (b *bearer) Do(r *http.Request) (*http.Response, error) {
	response, err := b.send(r)
	if err != nil || response.StatusCode != http.StatusUnauthorized || b.session.RefreshToken == "" {
		return response, err
	}
	_ = response.Body.Close()
	if err := b.refresh(r.Context()); err != nil {
		return nil, err
	}
	if r.GetBody != nil {
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return b.send(r)
}

func (b *bearer) send(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+b.session.Token)
	return plain.Do(r)
}

// refresh gets a new token, unless another command has done so meanwhile. A refresh token that is used twice ends the
// session, so commands do this one after another.
func (b *bearer) refresh(ctx context.Context) error {
	unlock, err := lockSession(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	stored, err := loadSession()
	switch {
	case err != nil:
		return err
	case stored.Server != b.session.Server:
		return notSignedIn(b.session.Server)
	case stored.Token != b.session.Token:
		b.session = stored
		return nil
	}
	// The old tokens are void once the service has answered: an interrupt must not lose the new ones.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	client, err := anonymous(stored.Server)
	if err != nil {
		return err
	}
	renewed, _, err := decode[SessionBody](client.Refresh(ctx, RefreshRequest{RefreshToken: stored.RefreshToken}))
	if hasStatus(err, http.StatusUnauthorized) {
		return fmt.Errorf("the session has ended: %w", notSignedIn(stored.Server))
	}
	if err != nil {
		return err
	}
	stored.Token, stored.RefreshToken = renewed.Token, renewed.RefreshToken
	b.session = stored
	return stored.save()
}
