package nodetest

import (
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/migrations/pgtest"
)

// sharedService is the service of Shared on an engine.
type sharedService struct {
	sync.Once
	service *Service
	process process
}

var onPostgres, onOther sharedService

// atEnd has the cleanups that wait for the end of the process.
var atEnd process

// Shared is one service on each engine for all tests of the process that ask for it: each works with people and tenants
// of its own, and changes nothing of the whole service. The package's TestMain must call Main.
func Shared(t testing.TB) *Service {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a Postgres, and -short is set")
	}
	shared := &onPostgres
	if onEventStoreDB(t) {
		shared = &onOther
	}
	shared.Do(func() {
		shared.process.TB = t
		// So much goes on in it at once that its database may lag on a busy machine.
		c := node.Config{
			Environment: "development",
			Patience:    time.Minute,
			SuperUsers:  []string{"Root@example.com", "second@example.com"},
		}
		shared.service = Start(&shared.process, Database(&shared.process), c, Log(&shared.process))
	})
	if shared.service == nil {
		t.Fatal("the shared service has not started; the first test that asked for it says why")
	}
	return shared.service.In(t)
}

// Main is pgtest.Main for a package whose tests use Shared or Build.
func Main(m *testing.M) {
	pgtest.Main(m, func() {
		onPostgres.process.end()
		onOther.process.end()
		atEnd.end()
	})
}

// process is a TB whose cleanups wait for the end of the process.
type process struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
}

// Cleanup implements testing.TB.
func (p *process) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

// Context implements testing.TB.
func (p *process) Context() context.Context { return context.Background() }

// Output implements testing.TB: that of the test would not outlast it.
func (p *process) Output() io.Writer { return os.Stderr }

func (p *process) end() {
	for _, clean := range slices.Backward(p.cleanups) {
		clean()
	}
}
