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
build: ## Build bin/flagledger, with the dashboard in it where there is Node
	@$(MAKE) --no-print-directory -j2 dashboard compile
	$(GO) build -trimpath -ldflags "-X main.build=$(BUILD)" -o bin/flagledger ./cmd/flagledger

.PHONY: compile
compile: # Compiles Go while Vite builds
	@$(GO) build -trimpath ./http

# The dashboard is built again when its sources or the API's document, which a test writes, have changed.
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

# With -short, tests that need a Postgres are skipped. Packages that start servers of others are left out.
.PHONY: check
check: ## Vet, run the tests that need no server, and one story through the API: for daily work
	$(GO) vet ./...
	$(GO) test -short $$($(GO) list ./... | grep -v -e /embedded -e /pgtest -e /firebase -e /tooltest -e /events/eventstore)
	$(GO) test -run '^TestAStory$$' ./http

# The race detector needs a C compiler.
RACE              := $(if $(shell command -v $(firstword $(shell $(GO) env CC)) 2>/dev/null),-race)

# Properties are checked on 20 examples in place of 100, other ones in each run: each makes dozens of calls. Several packages are tested at once, since
# many tests wait for servers. `make lint` vets. The race detector need not wait for a second at the end of each program.
.PHONY: test
test: export RAPID_CHECKS = 20
test: export GORACE = atexit_sleep_ms=0
test: dashboard ## Run all tests against a real Postgres, with the race detector if there is a C compiler
	@rm -f $(TOOLS)/not-tested-*
	$(PGRUN) -memory $(GO) test $(RACE) -vet=off -p 2 -parallel 4 -timeout 80m ./...; code=$$?; \
	cat $(TOOLS)/not-tested-* 2>/dev/null; \
	$(if $(RACE),,echo "TESTED WITHOUT THE RACE DETECTOR: it needs a C compiler";) exit $$code

.PHONY: bench
bench: ## Measure, three times and more, and show the medians (an hour)
	@mkdir -p bin
	$(GO) test -run '^$$' -bench . -benchtime 300ms -count 6 ./projections/snapshot ./commands/identity/local ./http/quota | tee bin/bench.txt
	$(PGRUN) $(GO) test -run '^$$' -bench . -benchtime 2s -count 3 -timeout 2h ./http ./projections/usage ./cmd/... | tee -a bin/bench.txt
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
	rm -rf bin $(TOOLS) $(DASHBOARD)/node_modules $(DASHBOARD)/dist/app $(DASHBOARD)/src/api/schema.d.ts
