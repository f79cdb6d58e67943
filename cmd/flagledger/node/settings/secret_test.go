package settings

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/commands/keep/keys"
	"flagledger/http/quota"
	"flagledger/migrations/pgtest"
)

func TestASecretIsMadeInTheDataFolder(t *testing.T) {
	t.Parallel()
	c := Config{Data: filepath.Join(t.TempDir(), "data")}
	var made sync.WaitGroup
	for range 8 {
		made.Go(func() {
			if _, err := c.OpenSecret(slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
		})
	}
	made.Wait()
	path := filepath.Join(c.Data, "secret")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v", info.Mode())
	}
	first, err := os.ReadFile(path)
	if err != nil || len(first) < 64 {
		t.Fatalf("the file has %d bytes: %v", len(first), err)
	}
	if _, err := c.OpenSecret(slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(path); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the next start has another secret: %v", err)
	}
	if files, err := os.ReadDir(c.Data); err != nil || len(files) != 1 {
		t.Errorf("it leaves %v: %v", files, err)
	}
	if err := os.WriteFile(path, []byte("sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.OpenSecret(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), path) ||
		strings.Contains(err.Error(), "sesame") {
		t.Errorf("a file that was cut off: %v", err)
	}
}

// An attacker who guesses an older secret could sign with it.
func TestTokensOfAnOlderSecretThatCanBeGuessedAreNotTakenInProduction(t *testing.T) {
	t.Parallel()
	pool, kind := pgtest.Pool(t), keys.Kind{
		Type:     "stream+jwt",
		Issuer:   "https://flags.example.com",
		Audience: "https://flags.example.com",
	}
	opened := func(environment, secret string) *keys.Keys {
		t.Helper()
		c := Config{Environment: environment, Secret: secret}
		s, err := c.OpenSecret(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		k, err := keys.Open(t.Context(), pool, s, filepath.Join(t.TempDir(), "keys"), time.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	random := func() string { return strings.ToLower(rand.Text() + rand.Text()) }
	good, newest := random(), random()
	for _, test := range []struct {
		environment, old string
		taken            bool
	}{
		{"development", composeSecret, true},
		{"production", composeSecret, false},
		{"production", good, true},
	} {
		signer := opened("development", test.old+","+newest+","+composeSecret)
		text, err := signer.SignOwn(kind, "u1", time.Now().Add(time.Hour), struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		var private struct{}
		if _, err := opened(
			test.environment, newest+","+test.old,
		).VerifyOwn(t.Context(), kind, text, &private); (err == nil) != test.taken {
			t.Errorf("%s, %q: %v", test.environment, test.old, err)
		}
	}
}

func TestSecretsAndProxiesInProduction(t *testing.T) {
	t.Parallel()
	random := strings.ToLower(rand.Text() + rand.Text())
	for _, test := range []struct {
		secret, proxies string
		refused         string // the setting, or "" if it starts
	}{
		{random, "", ""},
		// a secret that is being replaced
		{random + "," + strings.Repeat("x", 32), "10.0.0.0/8,fc00::/7,192.0.2.1,2001:db8::1", ""},
		{strings.Repeat("x", 32) + "," + random, "", "FLAGLEDGER_SECRET"},
		{"0123456789abcdef0123456789abcdef", "", "FLAGLEDGER_SECRET"},
		{strings.Repeat("abcde", 7), "", "FLAGLEDGER_SECRET"},
		{"this one is for trying it out alone", "", "FLAGLEDGER_SECRET"}, // of compose.yaml
		{"changemenowchangemenowchangemenowchange", "", "FLAGLEDGER_SECRET"},
		{random, "0.0.0.0/0", "FLAGLEDGER_TRUSTED_PROXIES"},
		{random, "10.0.0.1,::/0", "FLAGLEDGER_TRUSTED_PROXIES"},
		{random, "128.0.0.0/1", "FLAGLEDGER_TRUSTED_PROXIES"},
		{random, "2000::/3", "FLAGLEDGER_TRUSTED_PROXIES"},
	} {
		networks, err := quota.ParseProxies(test.proxies)
		if err != nil {
			t.Fatal(err)
		}
		c := Config{
			Environment:   "production",
			PublicURL:     "https://flags.example.com",
			Secret:        test.secret,
			ProxyNetworks: networks,
		}
		err = c.checkProduction()
		if test.refused == "" && err != nil ||
			test.refused != "" && (err == nil || !strings.HasPrefix(err.Error(), test.refused)) {
			t.Errorf("%q, %q: %v", test.secret, test.proxies, err)
		}
		if err != nil && strings.Contains(err.Error(), test.secret) {
			t.Errorf("the secret is printed: %v", err)
		}
		if c.Environment = "development"; c.checkProduction() != nil {
			t.Errorf("%q, %q: development is refused", test.secret, test.proxies)
		}
	}
}

func TestWarningsOfWhatIsOpenToAnybody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		c    Config
		want []string
	}{
		"on this machine":         {Config{Environment: "development", Addr: "127.0.0.1:8080"}, nil},
		"on this machine's IP6":   {Config{Environment: "development", Addr: "[::1]:8080"}, nil},
		"to all":                  {Config{Environment: "development", Addr: ":8080"}, []string{"FLAGLEDGER_ADDR"}},
		"to a network":            {Config{Environment: "development", Addr: "192.0.2.1:8080"}, []string{"FLAGLEDGER_ADDR"}},
		"at its own URL":          {Config{Environment: "development", Addr: "127.0.0.1:8080", PublicURL: "http://localhost:8080"}, nil},
		"behind a proxy":          {Config{Environment: "development", Addr: "127.0.0.1:8080", PublicURL: "https://flags.example.com"}, []string{"FLAGLEDGER_PUBLIC_URL"}},
		"with super users":        {Config{Environment: "development", Addr: "localhost:8080", SuperUsers: []string{"a@example.com"}}, []string{"FLAGLEDGER_SUPER_USERS"}},
		"to pages of all origins": {Config{Environment: "production", Addr: ":8080", Origins: []string{"*"}}, []string{"FLAGLEDGER_CORS_ORIGINS"}},
		"in production":           {Config{Environment: "production", Addr: ":8080", SuperUsers: []string{"a@example.com"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			test.c.WarnOfExposure(slog.New(slog.NewTextHandler(&log, nil)))
			if got := strings.Count(log.String(), "level=WARN"); got != len(test.want) {
				t.Errorf("%d warnings, want %d: %s", got, len(test.want), log.String())
			}
			for _, setting := range test.want {
				if !strings.Contains(log.String(), setting) {
					t.Errorf("no warning names %s: %s", setting, log.String())
				}
			}
			if strings.Contains(log.String(), "a@example.com") {
				t.Error("the log has an address")
			}
		})
	}
}
