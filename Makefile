# The commands of this repository. "make" lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# One step at a time: go test and the compiler use all the cores already.
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# How long each fuzz target runs. "make deep" gives each 15s.
FUZZTIME ?= 2s
# How often stress runs the tests.
ROUNDS ?= 3
# Which microbenchmarks run, and how often each: COUNT=10 is what benchstat wants.
BENCH ?= .
COUNT ?= 1
# More flags for bench, bench-fleet and bench-server, see bench/RESULTS.md.
BENCHFLAGS ?=

# What bench-docs compares: all limiters with many keys, and this one with the most used other one elsewhere.
COMPARED := 100,000 keys/|our algorithms|/(caddyratelimit|go-redis/)

# For how many minutes simulate runs worlds. SEED is the one that it tells.
MINUTES ?= 1
SEED ?=

# For which systems lint checks that all compiles, beside its own: one for each build constraint of ours, and for the
# other size of an int. deep checks more of those of Caddy's download page, where packages of others may lack something.
PLATFORMS ?= linux/386 windows/amd64 darwin/arm64
MORE_PLATFORMS ?= linux/arm linux/riscv64 freebsd/amd64

# What runs on 32 bits too, where an int is smaller: packages that compute, and import no Caddy,
# which would take minutes to compile, but for option, which needs little of it and reads numbers.
BITS32 := ./algorithms/... ./memorystore ./store ./internal/gate ./internal/topk ./internal/turns ./internal/usage ./internal/stats \
	./internal/msgpack ./internal/option ./redisstore/internal/outbox ./redisstore/internal/protocol

BIN := .bin
# Tests that need Redis fail without it, rather than skip.
REDIS := REQUIRE_REDIS=1
# With the race detector each process would otherwise take a second to exit. With GOGC=400 the collector
# of garbage takes a quarter of the time, and the processes up to 200 MB more.
RACE = GOFLAGS="$$GOFLAGS $(COMPILE) -race" GORACE=atexit_sleep_ms=50 GOGC=400
# What several goroutines do and imports no Caddy: "make test" has the race detector there, because to compile Caddy for it takes minutes.
RACED := ./memorystore/... ./redisstore/... ./store/... $(addprefix ./internal/,gate stats throttle turns)
# Compiling takes most of the time of the tests. Without debug information it takes a fifth less, and without inlining
# too 40 % less. Ours and Go's own packages are inlined, because tests count allocations.
COMPILE := '-gcflags=all=-l -dwarf=false' -gcflags=std=-dwarf=false -gcflags=./...=-dwarf=false
# How many Caddys, Redis servers and commands the tests of "make test" may start.
PROCESSES := 80

# Databases for certificate authorities, which Caddy's own releases leave out too, and no test needs.
CADDY_TAGS := nobadger,nomysql,nopgx
DEEP := -tags deep,$(CADDY_TAGS)
# What is compiled for one checkout serves all, because no path of it is part of the result.
export GOFLAGS += -trimpath -tags=$(CADDY_TAGS)
# The tests build binaries, also in a checkout of another user, where git refuses
# to tell go the version. Only "make build" and "make run" ask for it.
bench bench-costs bench-docs bench-fleet bench-nemesis bench-overload bench-overload-real bench-server bench-stream bits32 browser cover deep docs examples fuzz golden linear lint long microbench mutants outages profile race screenshots servers simulate stress test: export GOFLAGS += -buildvcs=false

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: test
test: redis ## Run the quick tests, which CI runs: at most 5 minutes on 2 cores
	@unformatted=$$(gofmt -l .) || exit 1; \
	[[ -z $$unformatted ]] || { printf 'not formatted ("make fmt" does it):\n%s\n' "$$unformatted" >&2; exit 1; }
	@mkdir -p $(BIN) && rm -f $(BIN)/processes
	@# lint vets. None is left out because it passed before: go does not know what the programs are made of that tests build.
	PROCESSES=$(abspath $(BIN)/processes) $(REDIS) GOFLAGS="$$GOFLAGS $(COMPILE)" GOGC=400 go test -vet=off -count=1 -timeout 5m $$(go list ./... | grep -vxF "$$(go list $(RACED))")
	PROCESSES=$(abspath $(BIN)/processes) $(REDIS) $(RACE) go test -vet=off -count=1 -timeout 5m $(RACED)
	@started=$$(wc -c < $(BIN)/processes); echo "the tests have started $$started processes"; \
	[[ $$started -le $(PROCESSES) ]] || { echo "that is more than $(PROCESSES): share them, or give the tests the tag deep" >&2; exit 1; }

.PHONY: redis
redis: ## Install redis-server if it is missing
	@scripts/redis.sh

.PHONY: promtool
promtool: ## Install promtool if it is missing
	@scripts/optional.sh prometheus promtool

.PHONY: python3
python3: ## Install python3 if it is missing
	@scripts/optional.sh python3 python3

.PHONY: chromium
chromium: ## Install chromium if it is missing
	@scripts/optional.sh chromium chromium chromium-browser google-chrome

.PHONY: lint
lint: tools ## Check format, go vet, staticcheck, go.mod, English and spelling
	@unformatted=$$($(BIN)/gofumpt -l .) || exit 1; \
	[[ -z $$unformatted ]] || { printf 'not formatted ("make fmt" does it):\n%s\n' "$$unformatted" >&2; exit 1; }
	go vet ./... && go vet $(DEEP) ./...
	$(BIN)/staticcheck $(DEEP) ./...
	go mod tidy -diff
	cd bench && go vet ./... && ../$(BIN)/staticcheck ./... && go mod tidy -diff
	cd integration/browser && go vet ./... && ../../$(BIN)/staticcheck ./... && go mod tidy -diff
	@scripts/english.sh $(BIN)/vale

.PHONY: platforms
platforms: ## Compile for other systems and sizes of an int
	go run ./internal/testing/platforms $(PLATFORMS)

.PHONY: simulate
simulate: ## Run whole fleets with fresh seeds: MINUTES=60, or one with SEED
	MINUTES=$(MINUTES) SEED=$(SEED) scripts/simulate.sh

.PHONY: race
race: redis promtool python3 ## Run all tests, the deep ones too, with the race detector
	@# The longest begin first.
	$(REDIS) $(RACE) go test $(DEEP) -vet=off -count=1 -parallel 5 -timeout 40m ./redisstore ./integration/faults $$(go list $(DEEP) ./... | grep -vE '/(redisstore|integration/faults)$$')
	go -C bench test -vet=off ./...

# A machine for amd64 runs binaries for 386, which the race detector is not for.
.PHONY: bits32
bits32: redis ## Run the tests of packages that compute as programs of 32 bits
	$(if $(filter x86_64,$(shell uname -m)),$(REDIS) scripts/bits32.sh $(BITS32))

# Where apt-get can install Chromium, the tests of the page fail without it, rather than skip.
.PHONY: browser
browser: redis chromium ## Test the page in headless Chromium, and refusals with clients of other people
	cd integration/browser && $(REDIS) REQUIRE_CHROMIUM=$(if $(shell command -v apt-get),1,0) go test -count=1 -parallel 4 -timeout 10m ./...

.PHONY: linear
linear: redis ## Check 100,000 answers of three stores under faults for linearizability
	$(REDIS) go test $(DEEP) -count=1 -v -run 'TestLinearizable$$' -timeout 10m ./redisstore

.PHONY: long
long: redis ## Run the tests with random steps in full, without the race detector, with which they take the usual ones
	$(REDIS) go test $(DEEP) -vet=off -count=1 -timeout 40m $$(go list $(DEEP) ./... | grep -v '/integration/')

.PHONY: deep
deep: lint platforms race long linear browser outages bits32 mutants servers examples ## On an idle machine, for an hour or two: everything that is not in test
	go run ./internal/testing/platforms $(MORE_PLATFORMS)
	@$(MAKE) fuzz FUZZTIME=15s
	@$(MAKE) simulate MINUTES=10
	@$(MAKE) stress ROUNDS=1

.PHONY: outages
outages: redis ## On an idle machine: times held to their bounds, reloads, floods (OUTAGE=60s: each fault for that long)
	$(REDIS) IDLE=1 go test $(DEEP) -count=1 -p 1 -v -timeout 20m \
		-run 'TestFaults|TestReloadOften|TestFloodsPassNothing' ./integration/{faults,floods}
	@# What answers soon, whoever decides it.
	$(REDIS) IDLE=1 go test $(DEEP) -count=1 -v -timeout 5m -run 'TestBackWithout|TestSentinel|TestCluster|TestSwitchover' ./redisstore/...

.PHONY: servers
servers: redis ## Test with other versions of Redis and with Valkey, from Debian's archive
	@nice scripts/servers.sh

.PHONY: mutants
mutants: redis ## Take fixes back, one at a time (MUTANT=h1 those so named), and demand that tests fail
	$(REDIS) go run ./internal/testing/mutants $(MUTANT)

.PHONY: stress
stress: redis promtool python3 ## Run the tests ROUNDS (3) times while other work keeps all cores busy, and once with GOMAXPROCS=1
	$(REDIS) ROUNDS=$(ROUNDS) scripts/stress.sh

.PHONY: fuzz
fuzz: redis ## Run the fuzz targets for FUZZTIME (2s) each
	$(REDIS) FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

.PHONY: examples
examples: ## Check examples/ and .github/ by the schemas of Kubernetes, Compose and GitHub Actions
	@# A module of its own, which takes longer to compile than all tests take.
	cd tools/examples && go vet ./... && go mod tidy -diff && go test -count=1 ./...

.PHONY: release
release: ## Write archives of VERSION (v1.2.3) for all systems into dist/
	scripts/release.sh $(VERSION)

.PHONY: reproduce
reproduce: ## Make the release VERSION (v1.2.3) for linux/amd64 twice, in clean checkouts, and compare each byte
	scripts/reproduce.sh $(VERSION)

.PHONY: bench
bench: redis ## Measure the Redis store beside its peers, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/bench .
	$(BIN)/bench $(BENCHFLAGS)

.PHONY: bench-fleet
bench-fleet: redis ## Measure several processes on one Redis beside their peers, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/bench .
	$(BIN)/bench fleet $(BENCHFLAGS)

.PHONY: bench-server
bench-server: redis ## Measure a Caddy with and without the directive, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/bench-server ./server
	$(BIN)/bench-server -root . $(BENCHFLAGS)

.PHONY: bench-costs
bench-costs: ## Measure a start, a reload, requests that wait and a million keys, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/bench-costs ./costs
	$(BIN)/bench-costs -root . $(BENCHFLAGS)

.PHONY: bench-replay
bench-replay: ## Measure the replay of logs on one core beside jq, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/bench-replay ./replay
	$(BIN)/bench-replay -root . $(BENCHFLAGS)

.PHONY: bench-stream
bench-stream: ## Measure when the events of a stream arrive, with and without a cost in the body, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/bench-stream ./stream
	$(BIN)/bench-stream -root . $(BENCHFLAGS)

.PHONY: bench-nemesis
bench-nemesis: redis build ## Break limiters under a known load, and count at the upstream, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/nemesis ./nemesis
	@go -C bench build -o ../$(BIN)/nemesis-gateway ./nemesis/gateway
	$(BIN)/nemesis -cases bench/nemesis/cases.txt -hook bench/nemesis/hook.sh $(BENCHFLAGS)

.PHONY: bench-overload
bench-overload: ## Play all scenarios of too much load with all limits, for some minutes, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/bench-overload ./overload
	$(BIN)/bench-overload $(BENCHFLAGS)

.PHONY: bench-overload-real
bench-overload-real: ## Measure an adaptive limit in front of real upstreams for five minutes, with BENCHFLAGS; -write renews its tables
	@go -C bench build -o ../$(BIN)/bench-overload-real ./overload/real
	$(BIN)/bench-overload-real -root . $(BENCHFLAGS)

.PHONY: profile
profile: redis ## Print which part of a Caddy's CPU samples is the directive's, with BENCHFLAGS
	@go -C bench build -o ../$(BIN)/bench-server ./server
	$(BIN)/bench-server -root . -profile -time 5s $(BENCHFLAGS)

.PHONY: bench-docs
bench-docs: redis ## Measure all of them in about 40 minutes, and write bench/RESULTS.md
	@go -C bench build -o ../$(BIN)/bench .
	@go -C bench build -o ../$(BIN)/bench-server ./server
	@go -C bench build -o ../$(BIN)/bench-costs ./costs
	$(BIN)/bench -time 2s -rounds 5 -only '$(COMPARED)' -page bench/RESULTS.md
	$(BIN)/bench fleet -time 2s -rounds 5 -goroutines 1,16 -lend-warm 30s -peers lend,ulule -page bench/RESULTS.md
	$(BIN)/bench-server -root . -time 2s -rounds 5 -page bench/RESULTS.md
	$(BIN)/bench-costs -root . -page bench/RESULTS.md

.PHONY: microbench
microbench: redis ## Run the Go benchmarks that match BENCH (.), COUNT (1) times
	$(REDIS) go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) .

.PHONY: golden
golden: redis ## Write the golden files again
	$(REDIS) UPDATE_GOLDEN=1 go test $(DEEP) -count 1 -run Golden ./...
	cd integration/browser && UPDATE_GOLDEN=1 go test -count 1 -run 'GRPC|Curl$$|MCP' .

.PHONY: docs
docs: ## Write docs/reference.md and the JSON schema anew, from the tags and comments in the code
	UPDATE_DOCS=1 go test -count 1 -run TestReference ./docs

.PHONY: screenshots
screenshots: redis chromium ## Take the pictures of pages in docs/ again, light and dark
	@dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && cd integration/browser && \
	$(REDIS) SCREENSHOTS=$$dir go test -count=1 -timeout 10m -run Screenshots . && \
	cp "$$dir"/{page,page-dark,replay,replay-dark}.png ../../docs/

.PHONY: cover
cover: redis ## Measure the coverage, into coverage.out and coverage.html
	$(REDIS) go test -timeout 15m -coverpkg ./... -coverprofile coverage.out ./...
	go tool cover -html coverage.out -o coverage.html
	@go tool cover -func coverage.out | tail -n 1

.PHONY: fmt
fmt: tools ## Format the Go files
	$(BIN)/gofumpt -w .

.PHONY: build
build: ## Build Caddy with this module into .bin/caddy
	go build -o $(BIN)/caddy ./cmd/caddy

.PHONY: run
run: ## Run Caddy with testdata/Caddyfile
	go run ./cmd/caddy run --config testdata/Caddyfile

.PHONY: tools
tools: ## Build the tools that tools/go.mod pins into .bin
	@go -C tools build -o ../$(BIN)/ tool

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf $(BIN) dist coverage.out coverage.html
