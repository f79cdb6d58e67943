package http_test

import (
	"os"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestMain(m *testing.M) {
	if token := os.Getenv("BENCH_BARE"); token != "" {
		serveBare(token)
		return
	}
	nodetest.Main(m)
}
