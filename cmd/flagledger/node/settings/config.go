// Package settings reads and checks the environment variables of a node, and describes them.
package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http"
	"flagledger/http/evaluation"
	"flagledger/http/quota"
	"flagledger/http/rest"
	"flagledger/queries"
)

// Config holds the settings. Those with a name are environment variables; Load checks them.
type Config struct {
	Addr                  string   `env:"FLAGLEDGER_ADDR" envDefault:"127.0.0.1:8080"`
	MetricsAddr           string   `env:"FLAGLEDGER_METRICS_ADDR"`
	SyncAddr              string   `env:"FLAGLEDGER_SYNC_ADDR"`
	Secret                string   `env:"FLAGLEDGER_SECRET"`
	Data                  string   `env:"FLAGLEDGER_DATA" envDefault:"./data"`
	DatabaseURL           string   `env:"FLAGLEDGER_DATABASE_URL"`
	Connections           string   `env:"FLAGLEDGER_DATABASE_CONNECTIONS"`
	EventStoreURL         string   `env:"FLAGLEDGER_EVENTSTORE_URL"`
	PublicURL             string   `env:"FLAGLEDGER_PUBLIC_URL"`
	Environment           string   `env:"FLAGLEDGER_ENVIRONMENT" envDefault:"development"`
	Log                   string   `env:"FLAGLEDGER_LOG" envDefault:"text"`
	SuperUsers            []string `env:"FLAGLEDGER_SUPER_USERS"`
	RateLimits            string   `env:"FLAGLEDGER_RATE_LIMITS"`
	FlagMiB               string   `env:"FLAGLEDGER_FLAG_MIB"`
	FeaturePlans          string   `env:"FLAGLEDGER_FEATURES"`
	Proxies               string   `env:"FLAGLEDGER_TRUSTED_PROXIES"`
	ConnectionsPerAddress string   `env:"FLAGLEDGER_CONNECTIONS_PER_ADDRESS"`
	FeedReaders           string   `env:"FLAGLEDGER_FEED_READERS"`
	Origins               []string `env:"FLAGLEDGER_CORS_ORIGINS"`
	SandboxDays           string   `env:"FLAGLEDGER_SANDBOX_DAYS"`
	StaleAfter            string   `env:"FLAGLEDGER_STALE_AFTER"`
	Drain                 string   `env:"FLAGLEDGER_DRAIN"`
	Mail                  Mail
	Firebase              Firebase
	Payment               Payment

	Limits     quota.Limits    `env:"-"` // RateLimits, parsed
	FlagBytes  quota.FlagBytes `env:"-"` // FlagMiB, parsed; nil means the plans' own
	Features   http.Features   `env:"-"` // FeaturePlans, parsed; nil means the catalogue's
	SandboxFor time.Duration   `env:"-"` // SandboxDays, parsed; 14 days if 0
	StaleFor   time.Duration   `env:"-"` // StaleAfter, parsed; 30 days if 0
	// PublicURLAssumed reports that PublicURL is derived from Addr: the addresses of streams then follow the requests.
	PublicURLAssumed bool           `env:"-"`
	DrainFor         time.Duration  `env:"-"` // Drain, parsed
	ProxyNetworks    []netip.Prefix `env:"-"` // Proxies, parsed
	// AddressConnections is ConnectionsPerAddress, parsed; only the command line's server uses it.
	AddressConnections int                     `env:"-"`
	Streams            evaluation.StreamLimits `env:"-"` // with FeedReaders, parsed
	// InvitationsPerDay replaces the plans' limits unless it is 0, for tests.
	InvitationsPerDay int              `env:"-"`
	Now               func() time.Time `env:"-"` // required; tests move it
	// FlushEvery is the interval for saving usage, five seconds if 0; tests set less.
	FlushEvery time.Duration `env:"-"`
	// WaitTimeout is the timeout for read models and Idempotency-Keys, two seconds if 0, and for queues and changes, five
	// if 0; tests that share a service set more.
	WaitTimeout time.Duration `env:"-"`
	// HashMemory is the KiB for hashing a password, the recommended ones if 0; tests set less.
	HashMemory   uint32 `env:"-"`
	PushEndpoint string `env:"-"` // of FCM; empty means Google's, tests set their own
	Build        string `env:"-"` // the number of the build, which /api/v1/version shows
}

// Load reads the settings. The error names the first invalid one, in one line.
func Load() (Config, error) {
	c := Config{
		Streams: evaluation.DefaultStreamLimits(), Now: time.Now, Limits: quota.Default(),
		AddressConnections: addressConnections,
	}.WithDefaults()
	if err := env.Parse(&c); err != nil {
		return c, errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	}
	if c.PublicURL == "" {
		c.PublicURL, c.PublicURLAssumed = urlOf(c.Addr), true
	}
	if c.Environment != "development" {
		c.DrainFor = drainTime
	}
	_, connectionsErr := c.PoolSize()
	err := cmp.Or(
		c.checkAddresses(),
		require(c.Data != "", "FLAGLEDGER_DATA must name a folder"),
		CheckURL("FLAGLEDGER_DATABASE_URL", c.DatabaseURL, "postgres", "postgresql"),
		connectionsErr,
		CheckURL("FLAGLEDGER_EVENTSTORE_URL", c.EventStoreURL, "esdb", "esdb+discover"),
		c.checkPublicURL(),
		require(c.Environment == "development" || c.Environment == "production",
			"FLAGLEDGER_ENVIRONMENT must be development or production; it is %q", c.Environment),
		c.checkOrigins(),
		c.checkSuperUsers(),
		require(c.Log == "text" || c.Log == "json", "FLAGLEDGER_LOG must be text or json; it is %q", c.Log),
		c.Mail.check(),
		c.Firebase.check(c.Environment),
		c.Payment.check(),
		c.checkSecret(),
		parse("FLAGLEDGER_TRUSTED_PROXIES", c.Proxies, quota.ParseProxies, &c.ProxyNetworks),
		parse("FLAGLEDGER_SANDBOX_DAYS", c.SandboxDays, parseSandboxDays, &c.SandboxFor),
		parse("FLAGLEDGER_STALE_AFTER", c.StaleAfter, parseStaleAfter, &c.StaleFor),
		parse("FLAGLEDGER_DRAIN", c.Drain, parseDrain, &c.DrainFor),
		parse("FLAGLEDGER_RATE_LIMITS", c.RateLimits, quota.Parse, &c.Limits),
		parse("FLAGLEDGER_FLAG_MIB", c.FlagMiB, quota.ParseFlagMiB, &c.FlagBytes),
		parse("FLAGLEDGER_FEATURES", c.FeaturePlans, http.ParseFeatures, &c.Features),
		parse("FLAGLEDGER_CONNECTIONS_PER_ADDRESS", c.ConnectionsPerAddress, number(1, 1_000_000), &c.AddressConnections),
		parse("FLAGLEDGER_FEED_READERS", c.FeedReaders, number(1, 1_000_000), &c.Streams.FeedReaders),
		c.checkProduction(), // after the others have parsed what it reads
	)
	return c, err
}

// require returns an error unless a condition holds.
func require(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// parse sets the parsed value of a setting, unless that is empty.
func parse[T any](setting, text string, parser func(string) (T, error), value *T) error {
	if text == "" {
		return nil
	}
	parsed, err := parser(text)
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	*value = parsed
	return nil
}

// checkPublicURL checks the public URL, and removes the slash at its end.
func (c *Config) checkPublicURL() error {
	if err := CheckURL("FLAGLEDGER_PUBLIC_URL", c.PublicURL, "http", "https"); err != nil {
		return err
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(c.PublicURL, "#") {
		return errors.New("FLAGLEDGER_PUBLIC_URL must have no user, query or fragment: mailed links begin with it")
	}
	if err := rest.CheckPublicPath(strings.TrimSuffix(u.EscapedPath(), "/")); err != nil {
		return fmt.Errorf("FLAGLEDGER_PUBLIC_URL: %w", err)
	}
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	return nil
}

func (c *Config) checkSuperUsers() error {
	for i, address := range c.SuperUsers {
		if c.SuperUsers[i] = strings.TrimSpace(address); commands.EmailKey(c.SuperUsers[i]) == "" {
			return fmt.Errorf("FLAGLEDGER_SUPER_USERS must be e-mail addresses separated by commas; %q is not one", address)
		}
	}
	return nil
}

// checkAddresses checks the addresses to listen on.
func (c Config) checkAddresses() error {
	if !isAddress(c.Addr) {
		return fmt.Errorf("FLAGLEDGER_ADDR must be host:port, such as 127.0.0.1:8080; it is %q", c.Addr)
	}
	if c.MetricsAddr != "" && (!isAddress(c.MetricsAddr) || c.MetricsAddr == c.Addr) {
		return fmt.Errorf(
			"FLAGLEDGER_METRICS_ADDR must be host:port, such as 127.0.0.1:9090, and differ from FLAGLEDGER_ADDR; it is %q",
			c.MetricsAddr)
	}
	if c.SyncAddr != "" && (!isAddress(c.SyncAddr) || c.SyncAddr == c.Addr || c.SyncAddr == c.MetricsAddr) {
		return fmt.Errorf("FLAGLEDGER_SYNC_ADDR must be host:port, such as 127.0.0.1:8015, and differ from "+
			"FLAGLEDGER_ADDR and FLAGLEDGER_METRICS_ADDR; it is %q", c.SyncAddr)
	}
	return nil
}

// hostPattern matches names of hosts.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// isAddress reports whether a text of the form host:port is an address to listen on.
func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, err = net.DefaultResolver.LookupPort(context.Background(), "tcp", port)
	_, notIP := netip.ParseAddr(host)
	return err == nil && port != "" && (notIP == nil || hostPattern.MatchString(host))
}

// urlOf returns the URL for clients on this machine. An address of all interfaces becomes localhost.
func urlOf(address string) string {
	host, port, _ := net.SplitHostPort(address)
	if unspecified(host) {
		host = "localhost"
	}
	if number, err := net.DefaultResolver.LookupPort(context.Background(), "tcp", port); err == nil { // or a service name
		port = strconv.Itoa(number)
	}
	return (&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}).String()
}

func unspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// LogPublicURL logs which host is used if neither FLAGLEDGER_PUBLIC_URL nor FLAGLEDGER_ADDR names one.
func (c Config) LogPublicURL(log *slog.Logger) {
	if host, _, _ := net.SplitHostPort(c.Addr); c.PublicURLAssumed && unspecified(host) {
		log.Info(
			"FLAGLEDGER_ADDR names no host: tokens and mailed links have localhost. Set FLAGLEDGER_PUBLIC_URL to how clients "+
				"reach the service", "address", c.Addr, "url", c.PublicURL)
	}
}

const (
	flushInterval = 5 * time.Second
	drainTime     = 5 * time.Second
	sandboxTime   = 14 * 24 * time.Hour
	staleTime     = 30 * 24 * time.Hour

	addressConnections = 2_000
)

// WithDefaults returns the settings with defaults for unset ones.
func (c Config) WithDefaults() Config {
	c.FlushEvery = cmp.Or(c.FlushEvery, flushInterval)
	c.SandboxFor = cmp.Or(c.SandboxFor, sandboxTime)
	c.StaleFor = cmp.Or(c.StaleFor, staleTime)
	if c.Features == nil {
		c.Features = events.FeaturePlans()
	}
	return c
}

// Staleness returns when a flag counts as stale.
func (c Config) Staleness() queries.Staleness {
	return queries.Staleness{Now: c.Now(), After: c.StaleFor}
}

// PublicKeysFile returns the path of the copy of the public signing keys; "" without a data folder, as in tests.
func (c Config) PublicKeysFile() string { return c.dataFile("public-keys") }

func (c Config) dataFile(name string) string {
	if c.Data == "" {
		return ""
	}
	return filepath.Join(c.Data, name)
}

// SnapshotFile returns the path of the snapshot's copy on disk; "" without a data folder.
func (c Config) SnapshotFile() string { return c.dataFile("snapshot") }

// number returns a parser of whole numbers from a least to a most.
func number(least, most int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("it must be a number from %d to %d; it is %q", least, most, text)
		}
		return n, nil
	}
}

// parseSandboxDays parses how long a new sandbox accepts changes.
func parseSandboxDays(text string) (time.Duration, error) {
	days, err := number(1, 3650)(text)
	return time.Duration(days) * 24 * time.Hour, err
}

// parseStaleAfter parses the time without use or change after which a flag is unused or settled.
func parseStaleAfter(text string) (time.Duration, error) {
	after, err := time.ParseDuration(text)
	if err != nil || after <= 0 {
		return 0, fmt.Errorf("it must be a duration above 0, such as 720h; it is %q", text)
	}
	return after, nil
}

// parseDrain parses how long a node serves on after it is asked to stop.
func parseDrain(text string) (time.Duration, error) {
	drain, err := time.ParseDuration(text)
	if err != nil || drain < 0 {
		return 0, fmt.Errorf("it must be a duration of 0 or more, such as 5s; it is %q", text)
	}
	return drain, nil
}

// originPattern matches an origin as browsers write it: a scheme, which may be an app's own, a host, and a port unless
// it is the default one.
var originPattern = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

func (c *Config) checkOrigins() error {
	for i, origin := range c.Origins {
		origin = strings.ToLower(strings.TrimSpace(origin))
		usualPort := strings.HasPrefix(origin, "http:") && strings.HasSuffix(origin, ":80") ||
			strings.HasPrefix(origin, "https:") && strings.HasSuffix(origin, ":443")
		if all := origin == "*" && len(c.Origins) == 1; !all && (!originPattern.MatchString(origin) || usualPort) {
			return fmt.Errorf(
				"FLAGLEDGER_CORS_ORIGINS must be * or origins as browsers send them, such as https://app.example.com, with "+
					"commas between; one is %q",
				origin)
		}
		c.Origins[i] = origin
	}
	return nil
}

// CheckURL checks that a setting is empty or a URL of one of the schemes. The error does not repeat it: it may hold a
// password.
func CheckURL(setting, value string, schemes ...string) error {
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err == nil && u.Host != "" {
		for _, scheme := range schemes {
			if u.Scheme == scheme {
				return nil
			}
		}
	}
	return fmt.Errorf("%s must be a URL that begins with %s://", setting, schemes[0])
}

// Logger writes to stderr in the form that the settings choose.
func (c Config) Logger() *slog.Logger {
	if c.Log == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

// ListLimits lists the limits that settings determine.
func ListLimits() []events.Limit {
	return []events.Limit{
		{
			Group: events.ConcurrencyLimits, Name: "connections", Max: addressConnections, Per: quota.PerSite,
			Nodes: events.EachNode, Beyond: "closed at once",
		},
	}
}
