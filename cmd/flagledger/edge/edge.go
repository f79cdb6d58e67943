// Package edge is a server without a database beside applications: it follows the feeds of a service, evaluates flags
// as the service does, and goes on while the service is away.
package edge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands"
	"flagledger/commands/keep/keys"
	"flagledger/http"
	"flagledger/http/evaluation"
	"flagledger/http/quota"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

// Config holds the settings of an edge.
type Config struct {
	From      string   // the URL of the service, or of another edge
	Keys      []string // server keys, one for each environment
	Open      bool     // callers on this machine need no key
	Folder    string   // for copies of the feeds and for usage to report
	PublicURL string
	// FollowHost says that PublicURL is not configured: the URLs of streams follow the requests.
	FollowHost bool
	Limits     quota.Limits
	// FeedReaders is how many readers of the feed the edge may have; 0 for the default.
	FeedReaders int
	Proxies     []netip.Prefix
	Metrics     *prometheus.Registry
	Now         func() time.Time
	Log         *slog.Logger
}

// Edge serves the environments of its keys.
type Edge struct {
	API *http.Edge

	config    Config
	followers []*follower
	reporters []*reporter   // of the followers, in their order
	ready     chan struct{} // closed once an environment can be evaluated: another key may be wrong
	open      func()        // closes ready
}

// New returns an edge loaded from its copies on disk. Its error names a setting that is wrong.
func New(c Config) (*Edge, error) {
	from, err := url.Parse(c.From)
	if err != nil || from.Host == "" || from.Scheme != "https" && from.Scheme != "http" {
		return nil, errors.New("--from (FLAGLEDGER_EDGE_FROM) must be the URL of a service, such as " +
			"https://flags.example.com")
	}
	c.From = strings.TrimRight(c.From, "/")
	if len(c.Keys) == 0 {
		return nil, errors.New("--key (FLAGLEDGER_EDGE_KEYS) must be a server key")
	}
	e := &Edge{config: c, ready: make(chan struct{})}
	e.open = sync.OnceFunc(func() { close(e.ready) })
	usage := newMeter(c.Now)
	live := &live{Snapshot: snapshot.New(snapshot.Options{}), ready: e.ready}
	for i, key := range c.Keys {
		if !commands.IsEvaluationKey(key) || !strings.HasPrefix(key, "sk_") {
			return nil, fmt.Errorf("--key (FLAGLEDGER_EDGE_KEYS): value %d is not a server key (sk_...)", i+1)
		}
		if slices.Contains(c.Keys[:i], key) {
			return nil, fmt.Errorf("--key (FLAGLEDGER_EDGE_KEYS): value %d is there twice", i+1)
		}
		f, err := newFollower(c, key)
		if err != nil {
			return nil, err
		}
		r, err := newReporter(c, key, usage)
		if err != nil {
			return nil, err
		}
		e.followers, e.reporters = append(e.followers, f), append(e.reporters, r)
		live.replicas = append(live.replicas, f.replica)
		if _, ok := f.replica.OwnTenant(); ok {
			e.open()
		}
	}
	removeOldFiles(c)
	secret, err := secretOf(c.Keys[0])
	if err != nil {
		return nil, err
	}
	tickets, err := keys.NewOwn(secret, c.Now)
	if err != nil {
		return nil, err
	}
	limiter := quota.NewLimiter(c.Limits, c.Proxies, c.Now)
	streams := evaluation.DefaultStreamLimits()
	streams.FeedReaders = cmp.Or(c.FeedReaders, streams.FeedReaders)
	e.API = http.NewEdge(http.EdgeOptions{
		Options: rest.Options{
			Live:        live,
			Incomplete:  e.incomplete,
			Keys:        tickets,
			Secret:      secret,
			Counter:     usage,
			Quotas:      &quota.Tenants{Live: live.Snapshot, Limiter: limiter, Now: c.Now},
			Now:         c.Now,
			Metrics:     c.Metrics,
			Log:         c.Log,
			Proxies:     c.Proxies,
			PublicURL:   c.PublicURL,
			FollowHost:  c.FollowHost,
			Environment: "production",
		},
		Evaluation: evaluation.Options{
			Changes:        live,
			Feeds:          live,
			StreamLimits:   streams,
			SigningSecrets: live.signingSecrets,
		},
		Status:   e.status,
		Upstream: newUpstream(from, c.Log),
	})
	if c.Open {
		e.API.ServeWithoutKeys(e.keyOf)
	}
	return e, nil
}

// secretOf derives the secret of an edge from its key: it encrypts the edge's files and signs its stream tickets.
func secretOf(key string) (keys.Secret, error) {
	hash := sha256.Sum256([]byte("flagledger edge " + key))
	return keys.ParseSecret(hex.EncodeToString(hash[:]))
}

// Run follows the feeds and reports usage until ctx ends.
func (e *Edge) Run(ctx context.Context) {
	var running sync.WaitGroup
	for i, f := range e.followers {
		running.Go(func() { f.run(ctx) })
		running.Go(func() { e.reporters[i].run(ctx, f.environmentID) })
		running.Go(func() {
			select {
			case <-f.replica.Ready():
				e.open()
			case <-ctx.Done():
			}
		})
	}
	running.Wait()
}

// incomplete reports whether an environment cannot be evaluated yet.
func (e *Edge) incomplete() bool {
	for _, f := range e.followers {
		if _, ok := f.replica.OwnTenant(); !ok {
			return true
		}
	}
	return false
}

// Ready is closed once one of the environments can be evaluated.
func (e *Edge) Ready() <-chan struct{} { return e.ready }

// keyOf returns the key for an environment's name, the first key if the name is empty, or "" if no key matches.
func (e *Edge) keyOf(environment string) string {
	for _, f := range e.followers {
		if environment == "" {
			return f.key
		}
		if t, ok := f.replica.OwnTenant(); ok {
			if _, ok := t.Environment(environment); ok {
				return f.key
			}
		}
	}
	return ""
}

// status reports how current the edge is.
func (e *Edge) status() (list []http.EdgeEnvironment) {
	for _, f := range e.followers {
		list = append(list, f.status())
	}
	return list
}
