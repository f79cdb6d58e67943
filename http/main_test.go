package http_test

import (
	"os"
	"testing"

	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) {
	if role, ok := benchRoles[os.Getenv("FLAGLEDGER_BENCH_ROLE")]; ok {
		role()
		return
	}
	pgtest.Main(m)
}
