package settings

import (
	"testing"

	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
