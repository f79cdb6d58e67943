package nodetest

import (
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/migrations/pgtest"
)

// sharedService holds the shared service of one engine.
type sharedService struct {
	sync.Once
	service *Service
	process process
}

var onPostgres, onOther sharedService

// atEnd holds the cleanups that run when the process ends.
var atEnd process

// Shared returns one service for each engine, for all tests of the process that work with people and tenants of their
// own and change no global state. The package's TestMain must call Main.
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
		// Its load is high, so its database may lag on a busy machine.
		c := settings.Config{
			Environment: "development",
			WaitTimeout: time.Minute,
			SuperUsers:  []string{"Root@example.com", "second@example.com"},
		}
		shared.service = Start(&shared.process, Database(&shared.process), c, Log(&shared.process))
	})
	if shared.service == nil {
		t.Fatal("the shared service has not started; the first test that asked for it says why")
	}
	return shared.service.In(t)
}

// Main is pgtest.Main for packages whose tests use Shared or Build.
func Main(m *testing.M) {
	pgtest.Main(m, func() {
		onPostgres.process.end()
		onOther.process.end()
		atEnd.end()
	})
}

// process is a TB whose cleanups run when the process ends.
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

// Output implements testing.TB. The test's own output ends with the test.
func (p *process) Output() io.Writer { return os.Stderr }

func (p *process) end() {
	for _, clean := range slices.Backward(p.cleanups) {
		clean()
	}
}
