package settings

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"flagledger/commands/keep/keys"
	"flagledger/events"
	"flagledger/http/evaluation"
	"flagledger/http/quota"
	"flagledger/migrations"
)

// Setting describes an environment variable of Config, for serve --help and docs/operate/settings.md.
type Setting struct {
	Name    string
	Default string // of the server; words if it depends on something, empty if unset
	Meaning string
}

// Group is a heading with its settings. Page is the page of docs/operate about them, if there is one.
type Group struct {
	Name, Page string
	Settings   []Setting
}

// List lists all settings in groups. It reads defaults from the tags of Config.
func List() []Group {
	groups := []Group{
		{"The server", "proxies.md", []Setting{
			{"FLAGLEDGER_ADDR", "", "The address to listen on."},
			{"FLAGLEDGER_PUBLIC_URL", "http:// and the address",
				"The URL that clients use, with a path or without: for tokens, mailed links and OFREP's streams."},
			{"FLAGLEDGER_ENVIRONMENT", "",
				"`development` or `production`. Use `production` if others can reach the server; it then refuses unsafe " +
					"settings."},
			{"FLAGLEDGER_TRUSTED_PROXIES", "",
				"Addresses and networks of proxies, separated by commas. The server trusts their `X-Forwarded-For`."},
			{"FLAGLEDGER_CORS_ORIGINS", "",
				"Origins of web pages that may call the service, separated by commas, or `*` for all."},
			{"FLAGLEDGER_METRICS_ADDR", "",
				"The address that serves `/metrics` and `/health`, and nothing else. Keep it private."},
			{"FLAGLEDGER_SYNC_ADDR", "",
				"An address that serves flagd's sync protocol alone, by HTTP/2 in clear. `FLAGLEDGER_ADDR` serves it too."},
			{"FLAGLEDGER_LOG", "", "`text` or `json`."},
			{"FLAGLEDGER_DRAIN", fmt.Sprintf("%v, 0 in development", drainTime),
				"How long a stopping node continues to serve: longer than a load balancer takes to notice."},
		}},
		{"Data", "nodes.md", []Setting{
			{"FLAGLEDGER_DATA", "",
				"The folder of the private Postgres, the snapshot and the secret. Each server needs its own."},
			{"FLAGLEDGER_DATABASE_URL", "",
				fmt.Sprintf("A Postgres of your own, version %d or newer; "+
					"if it names several hosts, the server uses the one that accepts writes.", migrations.OldestPostgres)},
			{"FLAGLEDGER_DATABASE_CONNECTIONS", strconv.Itoa(defaultConnections),
				fmt.Sprintf("How many connections to Postgres a node may open: at least %d, or %d with EventStoreDB.",
					partConnections+factConnections+minPool, partConnections+minPool)},
			{"FLAGLEDGER_EVENTSTORE_URL", "",
				"An EventStoreDB for the facts instead of Postgres: `esdb://user:password@host1:2113,host2:2113`."},
		}},
		{"Secret and people", "people.md", []Setting{
			{"FLAGLEDGER_SECRET", "random, in the data folder",
				fmt.Sprintf("At least %d random characters, the same on all nodes. The service derives its keys from it.",
					keys.MinSecret)},
			{"FLAGLEDGER_SUPER_USERS", "",
				"E-mail addresses, separated by commas. Each becomes a super user of the platform at the first sign-in."},
			{"FLAGLEDGER_SMTP_URL", "",
				"The mail server: `smtp://user:password@host:587?from=flags@example.com` (STARTTLS) or `smtps://`. Without " +
					"it mails go to the log."},
		}},
		{"Limits and plans", "limits.md", []Setting{
			{"FLAGLEDGER_RATE_LIMITS", defaultRateLimits(),
				"Requests a minute by plan; by client address `anonymous`, sign-ins (`auth`) and `browser` keys."},
			{"FLAGLEDGER_FLAG_MIB", perPlan(func(t events.PlanTerms) string { return strconv.Itoa(t.TenantFlagBytes >> 20) }),
				"The limit of all flags of a tenant in MiB, by plan. Every node holds them in memory."},
			{"FLAGLEDGER_FEATURES", defaultFeatures(), "The lowest plan that includes each feature."},
			{"FLAGLEDGER_CONNECTIONS_PER_ADDRESS", strconv.Itoa(addressConnections),
				"How many connections a client address may open: an " + quota.PerSite + "."},
			{"FLAGLEDGER_FEED_READERS", strconv.Itoa(evaluation.DefaultStreamLimits().FeedReaders),
				"How many readers of the feed, such as edges, a tenant may have on each node."},
			{"FLAGLEDGER_SANDBOX_DAYS", strconv.Itoa(int(sandboxTime / (24 * time.Hour))),
				"How many days a new sandbox accepts changes. The end of existing ones does not change."},
			{"FLAGLEDGER_STALE_AFTER", fmt.Sprintf("%dh", int(staleTime.Hours())),
				"How long a flag must be without evaluation to be `unused`, or without change and with one outcome to be " +
					"`settled`."},
		}},
		{"Payments through Stripe", "billing.md", []Setting{
			{"STRIPE_SECRET_KEY", "",
				"A secret or restricted key. Without it nothing is sold: checkout and portal answer 503."},
			{"STRIPE_WEBHOOK_SECRET", "",
				"The signing secret of the webhook endpoint. Without it the service sees payments once a day."},
			{"STRIPE_PRICES", "",
				"The prices of plans: `standard=price_...,enhanced=price_...`. A plan with several prices is sold at its " +
					"first."},
			{"STRIPE_CURRENCY", "", "The currency of payments for products."},
			{"STRIPE_API_BASE", "Stripe's",
				"The address of Stripe's API, for tests: https, or http on this machine."},
			{"FLAGLEDGER_RETURN_ORIGINS", "public URL and CORS origins",
				"Origins of the pages that Stripe may lead back to, separated by commas."},
		}},
		{"People at Firebase", "people.md", []Setting{
			{"FIREBASE_PROJECT_ID", "",
				"The Firebase project of the people, which also pushes notifications. Without it people are in the " +
					"service itself."},
			{"GOOGLE_APPLICATION_CREDENTIALS", "what the machine has",
				"The file of a service account of that project."},
			{"FIREBASE_API_KEY", "",
				"The project's web API key. Without it people cannot sign in with a password here."},
			{"FIREBASE_AUTH_EMULATOR_HOST", "", "Host and port of Firebase's emulator, for development."},
		}},
	}
	defaults := taggedDefaults()
	for _, group := range groups {
		for i := range group.Settings {
			s := &group.Settings[i]
			s.Default = cmp.Or(s.Default, defaults[s.Name])
		}
	}
	return groups
}

// taggedDefaults returns the default of each environment variable of Config, empty if its tag has none.
func taggedDefaults() map[string]string {
	fields, err := env.GetFieldParams(&Config{})
	if err != nil {
		panic(err) // the tags are part of the program
	}
	defaults := map[string]string{}
	for _, field := range fields {
		if !field.Ignored {
			defaults[field.Key] = field.DefaultValue
		}
	}
	return defaults
}

func perPlan(value func(events.PlanTerms) string) string {
	entries := make([]string, 0, len(events.Plans))
	for _, terms := range events.Plans {
		entries = append(entries, string(terms.Plan)+"="+value(terms))
	}
	return strings.Join(entries, ",")
}

func defaultRateLimits() string {
	limits := quota.Default()
	plans := perPlan(func(t events.PlanTerms) string { return strconv.Itoa(limits.Plans[t.Plan]) })
	return fmt.Sprintf("%s,anonymous=%d,auth=%d,browser=%d", plans, limits.Anonymous, limits.Auth, limits.Browser)
}

func defaultFeatures() string {
	var entries []string
	for _, feature := range []events.Feature{events.Analytics, events.Experiments, events.Multivariate} {
		entries = append(entries, string(feature)+"="+string(events.FeaturePlans()[feature]))
	}
	return strings.Join(entries, ",")
}
