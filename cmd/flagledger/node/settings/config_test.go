package settings_test

import (
	"log/slog"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
)

// TestStartsWithBadSettingsEnd of the program has the settings that only a start can check.
func TestSettingsThatAreBadAreNamed(t *testing.T) {
	for setting, values := range map[string][]string{
		"FLAGLEDGER_ADDR":                    {"8080", "localhost", "127.0.0.1:http:", "127.0.0.1:port", "127.0.0.1:70000", "127.0.0.1:", "a b:80", "a/b:80", "u@h:80", "[::1:80"},
		"FLAGLEDGER_METRICS_ADDR":            {"9090", "localhost", "127.0.0.1:8080", "127.0.0.1:port"},
		"FLAGLEDGER_SECRET":                  {"sesame", strings.Repeat("x", 40) + ",sesame", ","},
		"FLAGLEDGER_DATABASE_URL":            {"mysql://u:sesame@h/d", "h/d", "postgres://", "postgres://u:sesame@h:port/d"},
		"FLAGLEDGER_EVENTSTORE_URL":          {"http://u:sesame@h:2113", "h:2113", "esdb://"},
		"FLAGLEDGER_PUBLIC_URL":              {"flags.example.com", "ftp://flags.example.com", "https://", "https://u:sesame@flags.example.com", "https://flags.example.com/?a=b", "https://flags.example.com/#a", "https://flags.example.com/#", "https://example.com/api/flags", "https://example.com/app", "https://example.com/a//b", "https://example.com/..", "https://example.com/a%20b"},
		"FLAGLEDGER_ENVIRONMENT":             {"staging", "Production"},
		"FLAGLEDGER_LOG":                     {"xml", "TEXT"},
		"FLAGLEDGER_DATABASE_CONNECTIONS":    {"13", "1001", "many", "-1"},
		"FLAGLEDGER_CONNECTIONS_PER_ADDRESS": {"0", "-1", "1000001", "many"},
		"FLAGLEDGER_FEED_READERS":            {"0", "-1", "1000001", "many"},
		"FLAGLEDGER_DRAIN":                   {"5", "-1s", "a while"},
		"FLAGLEDGER_STALE_AFTER":             {"0", "-1h", "30", "a month"},
		"FLAGLEDGER_SANDBOX_DAYS":            {"0", "-1", "3651", "1.5", "a fortnight"},
		"FLAGLEDGER_RATE_LIMITS":             {"free", "free=", "free=0", "free=-1", "free=1.5", "gold=100", "free:100", "anonymous=9999999999999999999"},
		"FLAGLEDGER_FLAG_MIB":                {"free", "free=", "free=0", "free=1.5", "gold=1", "free=9999999"},
		"FLAGLEDGER_FEATURES":                {"analytics", "analytics=", "analytics=gold", "charts=free", "analytics:free"},
		"FLAGLEDGER_TRUSTED_PROXIES":         {"proxy", "10.0.0.0/33", "10.0.0.1:80", "::ffff:0.0.0.0/95"},
		"FIREBASE_PROJECT_ID":                {"Flags", "flags/1234", "-flags"},
		"FLAGLEDGER_SMTP_URL":                {"u:sesame@h", "smtp://u:sesame@h", "smtp://u:sesame@h?from=nobody", "smtp://u:sesame@h:port?from=a@example.com"},
		"FLAGLEDGER_CORS_ORIGINS": {
			"app.example.com", "https://", "https://app.example.com/", "https://app.example.com/x", "https://*.example.com", "*,https://app.example.com", "null",
			"https://app.example.com,", " ", "https://app.example.com https://b.example.com", "https://u:p@app.example.com", "https://app.example.com:443", "https://ä.example.com",
		},
	} {
		for _, value := range values {
			t.Run(setting+"="+value, func(t *testing.T) {
				t.Setenv(setting, value)
				_, err := settings.Load()
				if err == nil || !strings.Contains(err.Error(), setting) || strings.Contains(err.Error(), "sesame") ||
					strings.Contains(err.Error(), "\n") ||
					strings.Contains(err.Error(), value+`="`) {
					t.Errorf("the error is %v; it must name the setting in one line, quote what was written, and name no password", err)
				}
			})
		}
	}
}

// An address of all interfaces is not the host of a URL.
func TestDefaultPublicURLNamesReachableHost(t *testing.T) {
	for address, want := range map[string]string{
		":8080": "http://localhost:8080", "0.0.0.0:8080": "http://localhost:8080", "[::]:8080": "http://localhost:8080",
		"127.0.0.1:8080": "http://127.0.0.1:8080", "[::1]:8080": "http://[::1]:8080", "flags.internal:http": "http://flags.internal:80",
	} {
		t.Run(address, func(t *testing.T) {
			t.Setenv("FLAGLEDGER_ADDR", address)
			c, err := settings.Load()
			if err != nil || c.PublicURL != want || !c.PublicURLAssumed {
				t.Errorf("the public URL is %q, want %q: %v", c.PublicURL, want, err)
			}
			var log strings.Builder
			c.LogPublicURL(slog.New(slog.NewTextHandler(&log, nil)))
			if said := strings.Contains(log.String(), want); said != strings.Contains(want, "localhost") {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
	t.Setenv("FLAGLEDGER_ADDR", ":8080")
	t.Setenv("FLAGLEDGER_PUBLIC_URL", "https://flags.example.com")
	if c, err := settings.Load(); err != nil || c.PublicURL != "https://flags.example.com" || c.PublicURLAssumed {
		t.Errorf("the public URL is %q: %v", c.PublicURL, err)
	}
}
