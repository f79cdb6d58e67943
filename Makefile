# flagledger: `make help` lists what there is to do.

GO                ?= go
TOOLS             := $(CURDIR)/.tools
LINT_VERSION      := v2.15.0
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da
LINT              := $(TOOLS)/golangci-lint-$(LINT_VERSION)
BUILD             := $(shell git rev-parse --short HEAD 2>/dev/null || echo dev)
# One throwaway Postgres cluster serves all test packages of a run.
PGRUN             := $(GO) run ./migrations/pgtest/pgrun

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Set up all that is missing and serve on 127.0.0.1:8080
	@exec ./bin/flagledger serve

.PHONY: build
build: dashboard ## Build bin/flagledger, with the dashboard in it where there is Node
	$(GO) build -trimpath -ldflags "-X main.build=$(BUILD)" -o bin/flagledger ./cmd/flagledger

# The dashboard is built again when its sources or the API's document have changed. The document is made without it, from the packages that can change it.
DASHBOARD         := http/dashboard
# Vite takes Node 20 from 20.19 on, and 22.12 or newer.
NODE_IS_THERE     := $(shell node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 22 || (major == 22 && minor >= 12) || (major == 20 && minor >= 19) ? 0 : 1)' 2>/dev/null && npm --version 2>/dev/null)

.PHONY: dashboard
dashboard:
ifeq ($(NODE_IS_THERE),)
	@echo "Node is not installed, or is neither 20.19 or a later 20 nor 22.12 or newer: building without the dashboard" >&2
else
	@$(MAKE) --no-print-directory $(DASHBOARD)/dist/app/index.html
endif

$(DASHBOARD)/dist/app/index.html: $(DASHBOARD)/node_modules/.package-lock.json $(DASHBOARD)/src/api/schema.d.ts $(wildcard $(DASHBOARD)/*.json $(DASHBOARD)/*.ts $(DASHBOARD)/*.js $(DASHBOARD)/index.html) $(shell find $(DASHBOARD)/src -type f)
	cd $(DASHBOARD) && npm run --silent build

$(DASHBOARD)/node_modules/.package-lock.json: $(DASHBOARD)/package.json $(DASHBOARD)/package-lock.json
	cd $(DASHBOARD) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(DASHBOARD)/src/api/schema.d.ts: $(DASHBOARD)/node_modules/.package-lock.json $(DASHBOARD)/openapi.json
	cd $(DASHBOARD) && npm run --silent types

# Its time changes with its text alone.
$(DASHBOARD)/openapi.json: bin/openapi.json
	@cmp -s $< $@ || cp $< $@

bin/openapi.json: $(shell find http events commands queries -name '*.go' -not -path '*/node_modules/*' -not -name '*_test.go') go.mod
	@mkdir -p bin
	$(GO) run -trimpath ./cmd/flagledger openapi > $@.new
	@mv $@.new $@

# With -short, tests that need a Postgres are skipped; the packages left out run servers of others.
.PHONY: check
check: ## Vet, run the tests that need no server, and one story through the API: for daily work
	$(GO) vet ./...
	$(GO) test -short $$($(GO) list ./... | grep -v -e /embedded -e /pgtest -e /firebase -e /tooltest -e /events/eventstore)
	$(GO) test -run '^TestAStory$$' ./http

# Libraries that only compute take a third of a test's time where each of their reads and writes is checked. Of these, the race detector watches what is handed over
# alone. None of them may use sync/atomic, which `make lint` sees to, and -l keeps them from having copies of what others synchronize with, such as sync.Map.
COMPUTING         := encoding/json encoding/base64 reflect regexp/... fmt strconv unicode/... math/big crypto/internal/fips140/bigmod golang.org/x/crypto/argon2 \
	golang.org/x/crypto/blake2b github.com/jackc/pgx/v5 github.com/jackc/pgx/v5/pgproto3 github.com/jackc/pgx/v5/pgtype/... github.com/jackc/pgx/v5/pgconn/... \
	github.com/danielgtaylor/huma/v2/... github.com/santhosh-tekuri/jsonschema/v6/... github.com/go-json-experiment/json/jsontext \
	github.com/go-json-experiment/json/internal/...

# Programs without debug symbols link sooner, and `make lint` vets. With the race detector go checks how unsafe is used, where nothing here reads memory by it, and has each
# program sleep for a second at its end. Garbage is collected a third as often while there is memory: a heap that grows more than that is new pages, and their
# shadow, from the system.
RACE              := -race -gcflags=all=-d=checkptr=0 $(foreach library,$(COMPUTING),-gcflags='$(library)=-d=checkptr=0 -race=false -l') -ldflags='-s -w'
RACEBIN           := $(TOOLS)/race
RACERUN           := env GOGC=300 GOMEMLIMIT=2GiB GORACE=atexit_sleep_ms=0 FLAGLEDGER_TEST_PROGRAM=$(RACEBIN)/flagledger
RACETEST          := -test.paniconexit0 -test.parallel=4 -test.timeout=30m

# Properties of the API and of nodes are checked on 20 examples in place of 100, since each makes dozens of calls; with other ones in each run.
PROPERTIES        := -rapid.checks=20

# The parts go on at once and share a Postgres, since many tests wait for servers. Those of the API and of nodes take longest: the others take what they leave of the cores.
.PHONY: test
test: dashboard race-programs ## Run all tests with the race detector, against a real Postgres
	$(PGRUN) -memory $(MAKE) -j4 --no-print-directory test-http test-node test-others test-eventstore
	@cat $(TOOLS)/not-tested-* 2>/dev/null >&2 || true

# What several parts run is linked once: the tests that are run on each event store, and the program that tests start.
.PHONY: race-programs
race-programs:
	@mkdir -p $(RACEBIN)
	@echo linking what several parts run
	@$(GO) test -c -vet=off $(RACE) -o $(RACEBIN)/ ./http ./cmd/flagledger/node
	@$(GO) build $(RACE) -o $(RACEBIN)/flagledger ./cmd/flagledger

.PHONY: test-http
test-http:
	cd http && $(RACERUN) $(RACEBIN)/http.test $(RACETEST) $(PROPERTIES)

.PHONY: test-node
test-node:
	cd cmd/flagledger/node && $(RACERUN) $(RACEBIN)/node.test $(RACETEST) $(PROPERTIES)

# The race detector has unpacking a whole Postgres take ten seconds, so that this one test runs without it.
.PHONY: test-others
test-others:
	@nice -n 5 $(RACERUN) $(GO) test -vet=off $(RACE) -parallel 4 -timeout 30m -p 3 $$($(GO) list ./... | grep -v -e '/http$$' -e '/node$$')
	nice -n 5 $(GO) test -vet=off -ldflags='-s -w' -run '^TestDownloadForReal$$' ./migrations/embedded

# The tests of nodes and of the API once more, on the other event store, but for those that call nodetest.RunOnce.
.PHONY: test-eventstore
test-eventstore: export FLAGLEDGER_TEST_ENGINE = eventstore
test-eventstore:
	cd http && $(RACERUN) $(RACEBIN)/http.test $(RACETEST) $(PROPERTIES)
	cd cmd/flagledger/node && $(RACERUN) $(RACEBIN)/node.test $(RACETEST) $(PROPERTIES)

.PHONY: bench
bench: ## Measure, three times and more, and show the medians (an hour)
	@mkdir -p bin
	$(GO) test -run '^$$' -bench . -benchtime 300ms -count 6 ./projections/snapshot ./commands/identity/local ./http/limit | tee bin/bench.txt
	$(PGRUN) $(GO) test -run '^$$' -bench . -benchtime 2s -count 3 -timeout 2h ./http ./queries ./commands/keep/metering ./cmd/... | tee -a bin/bench.txt
	$(GO) run golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION) bin/bench.txt
	$(PGRUN) $(GO) test -run '^$$' -bench . -benchtime 2s -count 6 ./events/postgres ./events/eventstore | tee bin/events.txt
	$(GO) run golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION) -col pkg bin/events.txt
	@! grep '^FAIL' bin/bench.txt bin/events.txt

.PHONY: bench-http
bench-http: ## Measure what an evaluation over HTTP costs, beside a bare handler (two minutes)
	@command -v wrk >/dev/null || { echo "wrk is not installed (Debian: apt-get install wrk; Homebrew: brew install wrk)" >&2; exit 1; }
	$(PGRUN) $(GO) test -run '^$$' -bench EvaluateHTTP -benchtime 9x ./http

.PHONY: lint
lint: $(LINT) ## Check style and the rules of the house
	$(GO) mod tidy -diff
	@! $(GO) list -e -f '{{.ImportPath}} {{.Imports}}' $(COMPUTING) | grep -w sync/atomic
	$(LINT) run
	$(LINT) fmt --diff
ifneq ($(NODE_IS_THERE),)
	@$(MAKE) --no-print-directory $(DASHBOARD)/src/api/schema.d.ts
	cd $(DASHBOARD) && npm run --silent lint
endif

$(LINT):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv $(TOOLS)/golangci-lint $@

.PHONY: clean
clean: ## Remove what was built; data stays
	rm -rf bin $(TOOLS) $(DASHBOARD)/node_modules $(DASHBOARD)/dist/app $(DASHBOARD)/openapi.json $(DASHBOARD)/src/api/schema.d.ts
