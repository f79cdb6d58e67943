package settings

import (
	"strings"
	"testing"
)

func TestProductionRefusesTheEmulator(t *testing.T) {
	t.Parallel()
	for _, environment := range []string{"development", "production"} {
		s := Firebase{ProjectID: "flags-1234", EmulatorHost: "127.0.0.1:9099"}
		if err := s.check(environment); (err != nil) != (environment == "production") ||
			err != nil && !strings.Contains(err.Error(), "FIREBASE_AUTH_EMULATOR_HOST") {
			t.Errorf("%s: %v", environment, err)
		}
	}
}
