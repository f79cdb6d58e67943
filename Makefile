# flagledger: `make help` lists what there is to do.

GO            ?= go
TOOLS         := $(CURDIR)/.tools
LINT_VERSION  := v2.15.0
LINT          := $(TOOLS)/golangci-lint-$(LINT_VERSION)
BUILD         := $(shell git rev-parse --short HEAD 2>/dev/null || echo dev)
# One throwaway Postgres cluster serves all test packages of a run.
PGRUN         := $(GO) run ./migrations/pgtest/pgrun

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Set up all that is missing and serve on 127.0.0.1:8080
	@exec ./bin/flagledger serve

.PHONY: build
build: ## Build bin/flagledger
	$(GO) build -trimpath -ldflags "-X main.build=$(BUILD)" -o bin/flagledger ./cmd/flagledger

.PHONY: test
test: ## Run all tests with the race detector, against a real Postgres
	$(PGRUN) $(GO) test -race -timeout 15m ./...

.PHONY: bench
bench: ## Measure: medians of several runs, and the figures that are promised
	$(PGRUN) $(GO) run ./cmd/flagledger/bench

.PHONY: lint
lint: $(LINT) ## Check style and the rules of the house
	$(GO) mod tidy -diff
	$(LINT) run
	$(LINT) fmt --diff

$(LINT):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv $(TOOLS)/golangci-lint $@

.PHONY: clean
clean: ## Remove what was built; data stays
	rm -rf bin $(TOOLS)
