package flagd_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }
