# Everything is built and checked from here; `make help` lists the targets. Go and Python 3 (for pip, which fetches Envoy) are
# all that is needed. Results go to build/, downloads and tools to .cache/; git ignores both.

GO ?= go
STATICCHECK_VERSION := v0.8.2
STATICCHECK := .cache/staticcheck-$(STATICCHECK_VERSION)/staticcheck

# How long each fuzz target runs. `make check` makes do with less.
FUZZTIME ?= 30s
CHECK_FUZZTIME := 3s

# The trace of `make bench-trace`, from github.com/kvcache-ai/Mooncake, FAST25-release/traces; looked for in a folder
# "traces" here and in the folders next to this one.
WARMLANE_TRACE ?= $(firstword $(wildcard traces/conversation_trace.jsonl* ../*/traces/conversation_trace.jsonl*))

# How long `make soak` takes.
SOAK ?= 30m

# Envoy versions of `make e2e-matrix`.
ENVOY_VERSIONS ?= 1.36.4 1.37.0 1.38.2 1.39.3 1.40.0

PROGRAMS := ./control ./examples/replica ./examples/quickstart ./examples/demo
E2E := ./examples/e2e/... ./examples/quickstart/...

# The race detector needs a C compiler; where there is none, go says so by turning cgo off.
RACE = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

.DEFAULT_GOAL := help
.PHONY: help build demo test race e2e e2e-matrix e2e-vllm bench bench-trace soak fuzz lint check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the filter and the programs, into build/
	GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -ldflags="-s -w" -trimpath -o build/warmlane.wasm ./filter
	CGO_ENABLED=0 $(GO) build -trimpath -o build/ $(PROGRAMS)

demo: build ## four simulated replicas, the same load through round robin and through Warmlane, a table
	build/demo -build build

test: build ## all tests that need no running Envoy or engine
	$(GO) test ./...

race: build ## the same with the race detector
	$(GO) test $(RACE) ./...

e2e: build ## end-to-end tests on a real Envoy (WARMLANE_ENVOY_VERSION names another than the default)
	$(GO) test -tags e2e -count=1 -timeout 15m $(E2E)

e2e-matrix: build ## end-to-end tests on each supported Envoy
	@set -e; for version in $(ENVOY_VERSIONS); do \
		echo "== Envoy $$version"; \
		WARMLANE_ENVOY_VERSION=$$version $(GO) test -tags e2e -count=1 -timeout 15m $(E2E); \
	done

e2e-vllm: build ## end-to-end tests on two real vLLM 0.32.0 on CPU (installs 5 GB once, into .cache/vllm)
	$(GO) test -tags vllm -count=1 -p 1 -v -timeout 45m ./examples/vllm/...

soak: ## control for SOAK with engines that restart at random: memory flat, index right
	WARMLANE_SOAK=$(SOAK) $(GO) test -tags soak -count=1 -run TestSoak -v -timeout 0 ./control

bench: build ## Go benchmarks, then Envoy with Warmlane against plain Envoy, into build/bench.json
	$(GO) test -run '^$$' -bench . -benchmem ./filter/...
	$(GO) run ./examples/bench -build build

bench-trace: build ## a real trace (file: WARMLANE_TRACE) through Envoy and eight simulated engines, into build/trace.json
	$(GO) run ./examples/bench/trace -build build -trace '$(WARMLANE_TRACE)'

fuzz: ## every fuzz target for FUZZTIME
	@set -e; grep -rE --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file func; do \
		target=$${func#func }; \
		echo "== $$(dirname $$file) $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" </dev/null; \
	done

lint: $(STATICCHECK) ## formatting, vet, staticcheck, go.mod
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags e2e,vllm,soak ./examples/... ./control/...
	GOOS=wasip1 GOARCH=wasm $(GO) vet -unsafeptr=false ./filter/...
	$(STATICCHECK) ./...
	$(STATICCHECK) -tags e2e,vllm,soak ./examples/... ./control/...
	$(GO) mod tidy -diff

check: lint race ## what CI runs: lint, tests with the race detector, short fuzzing, end-to-end tests
	@$(MAKE) --no-print-directory fuzz FUZZTIME=$(CHECK_FUZZTIME)
	@$(MAKE) --no-print-directory e2e

clean: ## remove build/; .cache/ stays, for it was downloaded
	rm -rf build

$(STATICCHECK):
	GOBIN=$(CURDIR)/$(dir $@) $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
