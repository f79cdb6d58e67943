package main

import (
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestSettingsThatContradictProductionAreNamed(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	production := []string{"FLAGLEDGER_ENVIRONMENT=production", "FLAGLEDGER_PUBLIC_URL=https://flags.example.com"}
	for _, contradiction := range []string{
		"FLAGLEDGER_SECRET=", "FLAGLEDGER_SECRET=changemechangemechangemechangemech", "FLAGLEDGER_TRUSTED_PROXIES=10.0.0.1,0.0.0.0/0", "FLAGLEDGER_PUBLIC_URL=http://flags.example.com", "FLAGLEDGER_CORS_ORIGINS=https://app.example.com,http://localhost:5173",
		"FLAGLEDGER_RETURN_ORIGINS=https://localhost:5173", "FLAGLEDGER_RETURN_ORIGINS=http://app.example.com",
	} {
		setting, _, _ := strings.Cut(contradiction, "=")
		run(i, append(slices.Clone(production), contradiction)).refused(setting, "production")
	}
}
