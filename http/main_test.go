package http_test

import (
	"os"
	"testing"

	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) {
	if token := os.Getenv("BENCH_BARE"); token != "" {
		serveBare(token)
		return
	}
	pgtest.Main(m)
}
