package firebase

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"flagledger/commands"
)

const (
	keysURL = "https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com"

	keysTake     = 5 * time.Second
	keysSoonest  = time.Minute   // after the last read
	keysLatest   = 6 * time.Hour // maximum, whatever Google says
	keysRetry    = 10 * time.Second
	keysMaxBytes = 1 << 20
)

// googleKeys caches Google's keys for ID tokens. Readers neither lock nor wait.
type googleKeys struct {
	now    func() time.Time
	log    *slog.Logger
	client *http.Client
	held   atomic.Pointer[map[string]*rsa.PublicKey]
	asked  chan struct{} // requests a refresh
}

func newGoogleKeys(now func() time.Time, log *slog.Logger) *googleKeys {
	return &googleKeys{now: now, log: log, client: &http.Client{Timeout: keysTake}, asked: make(chan struct{}, 1)}
}

// find returns the key with an id, or nil. An unknown id triggers a refresh in the background: Google publishes keys
// long before it signs with them.
func (k *googleKeys) find(_ context.Context, id string) (*rsa.PublicKey, error) {
	held := k.held.Load()
	if held != nil && (*held)[id] != nil {
		return (*held)[id], nil
	}
	select {
	case k.asked <- struct{}{}:
	default:
	}
	if held == nil {
		return nil, &commands.Error{Kind: commands.Unavailable, Detail: "the keys of Google's tokens are not known yet"}
	}
	return nil, nil
}

// run reads the keys whenever they may have changed, until ctx ends. If that fails, the known keys stay.
func (k *googleKeys) run(ctx context.Context) {
	wait := keysSoonest
	if k.held.Load() == nil {
		wait = keysRetry
	}
	read := k.now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.asked:
			if since := k.now().Sub(read); since >= 0 && since < keysRetry {
				continue // limits the calls that invented ids cause
			}
		}
		read = k.now()
		timer.Reset(k.load(ctx))
	}
}

// load reads the keys, and returns when to read them again.
func (k *googleKeys) load(ctx context.Context) time.Duration {
	found, good, err := k.fetch(ctx)
	if err != nil {
		if ctx.Err() == nil {
			k.log.Warn("the keys of Google's tokens cannot be read; those that are known stay", "retry_in", keysRetry,
				"err", err)
		}
		return keysRetry
	}
	k.held.Store(&found)
	return min(max(good, keysSoonest), keysLatest)
}

func (k *googleKeys) fetch(ctx context.Context) (found map[string]*rsa.PublicKey, good time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, keysURL, nil)
	if err != nil {
		return nil, 0, err
	}
	answer, err := k.client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("%s answers %s", keysURL, answer.Status)
	}
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(io.LimitReader(answer.Body, keysMaxBytes)).Decode(&set); err != nil {
		return nil, 0, err
	}
	found = map[string]*rsa.PublicKey{}
	for _, key := range set.Keys {
		if public, ok := key.Key.(*rsa.PublicKey); ok && key.KeyID != "" {
			found[key.KeyID] = public
		}
	}
	if len(found) == 0 {
		return nil, 0, errors.New(keysURL + " answers no keys")
	}
	return found, goodFor(answer.Header.Get("Cache-Control")), nil
}

// goodFor returns the max-age of a Cache-Control header.
func goodFor(header string) time.Duration {
	for directive := range strings.SplitSeq(header, ",") {
		if age, ok := strings.CutPrefix(strings.TrimSpace(directive), "max-age="); ok {
			seconds, _ := strconv.Atoi(age)
			return time.Duration(seconds) * time.Second
		}
	}
	return 0
}
