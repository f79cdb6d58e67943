package settings

import (
	"maps"
	"os"
	"reflect"
	"testing"
)

// List describes each environment variable of Config once, and no other.
func TestSettingsDescribeTheConfig(t *testing.T) {
	t.Parallel()
	missing := taggedDefaults()
	if len(missing) < 30 {
		t.Errorf("Config has only %d environment variables", len(missing))
	}
	for _, group := range List() {
		for _, s := range group.Settings {
			if _, ok := missing[s.Name]; !ok || s.Meaning == "" {
				t.Errorf("%s of %s is no setting, is there twice, or has no meaning", s.Name, group.Name)
			}
			delete(missing, s.Name)
		}
		if _, err := os.Stat("../../../../docs/operate/" + group.Page); err != nil {
			t.Error(err)
		}
	}
	for name := range missing {
		t.Errorf("%s is not described: add it to List", name)
	}
}

// A server with the described defaults has the settings of one without any.
func TestDescribedDefaultsMatchServer(t *testing.T) {
	untold, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range List() {
		for _, s := range group.Settings {
			switch s.Name {
			case "FLAGLEDGER_SANDBOX_DAYS", "FLAGLEDGER_STALE_AFTER", "FLAGLEDGER_RATE_LIMITS", "FLAGLEDGER_FLAG_MIB",
				"FLAGLEDGER_FEATURES", "FLAGLEDGER_CONNECTIONS_PER_ADDRESS", "FLAGLEDGER_DATABASE_CONNECTIONS",
				"FLAGLEDGER_FEED_READERS":
				t.Setenv(s.Name, s.Default)
			}
		}
	}
	told, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	told, untold = told.WithDefaults(), untold.WithDefaults()
	toldPool, err := told.PoolSize()
	if err != nil {
		t.Fatal(err)
	}
	untoldPool, _ := untold.PoolSize()
	same := toldPool == untoldPool && told.SandboxFor == untold.SandboxFor && told.StaleFor == untold.StaleFor &&
		told.AddressConnections == untold.AddressConnections && told.Streams == untold.Streams &&
		reflect.DeepEqual(told.Limits, untold.Limits) && maps.Equal(told.Features, untold.Features)
	for plan, most := range told.FlagBytes {
		same = same && most == untold.FlagBytes.Of(plan)
	}
	if !same || len(told.FlagBytes) == 0 {
		t.Errorf("the settings are %+v, and by default %+v", told, untold)
	}
}
