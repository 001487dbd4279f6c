GO ?= go
TOOL := scripts/tool.sh

SEED ?= 1
ROUNDS ?= 1
FOR ?= 0s
ONLY ?=
O ?= text
BEATS ?= 3m
KEYS ?= 1000
JOINS ?= 1000
NODES ?= 20
SHARDS ?= 16
OPS ?= 600
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
NOSHRINK ?= false
FAILURES ?= 1
RATE ?= 2000
KILLS ?= 5
STALLS ?= false
LOG ?=
MUTANTS ?=
TIMERS ?= 10000
BASE ?=

# The tests of a package wait for Redis and other processes for a third of their time, so
# one package more than there are cores runs at once.
PACKAGES ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

BENCH ?= .
COUNT ?= 6
SCALE ?= 1
FUZZTIME ?= 60s

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast simulate simulate-fleet simulate-mutants embedded-kills gate-histories cluster-failovers takeover incidents faults partitions faults-mutants models spec script-bounds stock hostile lint fmt fmt-check vet bench bench-peers bench-test browser-test screenshots outbox-test outbox-bench baseline mixed-versions generate generate-check check fuzz build release-check deploy-test site setup clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## show timers at work; needs no Redis
	@$(GO) run ./cmd/wakebell/demo

# Some tests do less under the race detector or with -short, or are left out: they compute, or
# call scripts one after the other, or fill memory, and the detector makes that up to twenty times
# as long. They run without it too: all tests of the packages where helpers decide that, WHOLE, and
# in other packages those of the files that say so, PARTS.
find = grep -rlE '$(1)' --include='*_test.go' --exclude-dir=tools .
folders = $(sort $(patsubst %/,%,$(dir $(1))))
WHOLE = $(call folders,$(shell $(call find,testing\.Short\(\)|redistest\.Raced|storetest\.OnEach)))
PARTS = $(foreach file,$(shell $(call find,pgregory.net/rapid|^//go:build .*!race)),$(if $(filter $(call folders,$(file)),$(WHOLE)),,$(file)))
NAMES = $(shell sed -nE 's/^func ((Test|Fuzz|Example)[A-Za-z0-9_]*).*/\1/p' $(PARTS) | sort -u | paste -sd '|' -)

# The interpreter of Lua in the embedded Redis is built without the race detector: one goroutine
# has it at a time, and it would be most of the suite. No package with generic code may be:
# the linker may take its copies of the functions of sync, which the detector does not see.
test: export GOFLAGS += -gcflags=github.com/yuin/gopher-lua/...=-race=false

# All is compiled before: several tests build programs, or read what the compiler knows, and
# would compile the same packages at the same time. `go list -export` compiles, and does not link
# two dozen programs that nobody runs. `make lint` runs go vet.
test: setup ## run the tests under the race detector, and without it those that it slows down or cannot see into; installs redis-server and what the clients need
	@$(GO) list -export ./... > /dev/null
	@$(GO) list -export -race ./... > /dev/null
	$(GO) test -vet=off -timeout 20m -p $(PACKAGES) $(WHOLE)
	@echo "$(GO) test: the tests of other packages that the detector leaves out"
	@$(GO) test -vet=off -timeout 20m -p $(PACKAGES) -run '^($(NAMES))$$' $(call folders,$(PARTS))
	$(GO) test -vet=off -race -short -timeout 20m -p $(PACKAGES) ./...

test-fast: ## run the tests without the race detector and with fewer rounds (-short)
	$(GO) test -short -timeout 5m ./...

embedded-kills: KILLS = 500
embedded-kills: ## kill a process that writes to an embedded store with each of two sync modes (KILLS=500)
	$(GO) test ./internal/embedded/durable -run 'TestKilledProcess' -v -count 1 -timeout 12h -kills $(KILLS)

gate-histories: ROUNDS = 20
gate-histories: setup ## make many histories of gates and check them (SEED=1 ROUNDS=20)
	$(GO) test ./internal/faults -run 'TestGateHistories' -v -count 1 -timeout 12h -gate-seed $(SEED) -gate-rounds $(ROUNDS)

cluster-failovers: setup ## show how soon deliveries resume after a failover of a Cluster (ROUNDS=1)
	@$(GO) test ./internal/stacktest/layout -run '^TestDeliveriesResumeAfterClusterFailover$$' -v -count $(ROUNDS) -timeout 0 | grep -e 'new master' -e '^[- ]*FAIL'

takeover: setup ## show how soon the shards of a killed node are taken over (NODES=20 SHARDS=16 RATE=2000 KILLS=5)
	@$(GO) test ./internal/faults -run '^TestTakeover$$' -v -count 1 -timeout 0 \
		-takeover.bound -takeover.nodes $(NODES) -takeover.shards $(SHARDS) -takeover.rate $(RATE) -takeover.kills $(KILLS) | grep -e 'takeover p50' -e '^[- ]*FAIL'

incidents: setup ## produce incidents with real processes and a real Prometheus, and show when each sign is seen (ONLY=total-silence,paused); minutes
	@$(GO) test ./internal/incidents -run '^TestIncidents$$' -v -count 1 -timeout 1h -parallel 3 -incidents -incidents.only '$(ONLY)' | grep -e '| ' -e '^ *--- FAIL' -e 'is not seen' -e '^ok' -e '^FAIL'

faults: setup ## inject faults into real nodes and a real Redis, and account for every timer (SEED=1 ROUNDS=1 FOR=1h ONLY=kill,stop BEATS=3m KEYS=1000 JOINS=1000 STALLS=true LOG=folder O=text|json|markdown)
	@$(GO) test -c -o .tools/faults.test ./internal/faults
	@cd internal/faults && $(CURDIR)/.tools/faults.test -test.run '^TestFaults$$' -test.timeout 0 \
		-faults.seed $(SEED) -faults.rounds $(ROUNDS) -faults.for $(FOR) -faults.all -faults.only '$(ONLY)' -faults.beats $(BEATS) -faults.keys $(KEYS) -faults.joins $(JOINS) -faults.stalls=$(STALLS) -faults.log '$(if $(LOG),$(abspath $(LOG)))' -faults.o $(O)

simulate: ROUNDS = 100
simulate: ## run fleets on the Lua scripts in virtual time (SEED=1 ROUNDS=100 FOR=1h OPS=600 JOBS=2 FAILURES=1 NOSHRINK=true)
	GOGC=400 $(GO) test ./internal/simulate -run '^TestSimulate$$' -v -count 1 -timeout 0 -simulate.seed $(SEED) -simulate.runs $(ROUNDS) -simulate.for $(FOR) -simulate.rare 8 -simulate.ops $(OPS) -simulate.jobs $(JOBS) -simulate.failures $(FAILURES) -simulate.noshrink=$(NOSHRINK)

simulate-fleet: ROUNDS = 100
simulate-fleet: SHRINK = 5
simulate-fleet: ## run whole Systems with clients, links and faults in virtual time; not exact (SEED=1 ROUNDS=100 OPS=600 FAILURES=1 SHRINK=5)
	$(GO) test ./internal/simulate/fleet -run '^TestFleet$$' -v -count 1 -timeout 0 -fleet.seed $(SEED) -fleet.runs $(ROUNDS) -fleet.ops $(OPS) -fleet.failures $(FAILURES) -fleet.shrink $(SHRINK)

simulate-mutants: FOR = 60s
simulate-mutants: ## break one guard after another, and see after how many plans and seconds the simulation detects it (MUTANTS=token SEED=1 FOR=60s)
	@SEED=$(SEED) FOR=$(FOR) scripts/simulate-mutants.sh $(MUTANTS)

spec: ROUNDS = 10000
spec: setup ## explore every state of the small worlds of docs/spec.md, and run histories of it against the scripts (SEED=1 ROUNDS=10000)
	$(GO) test ./internal/spec -run 'State|Clauses' -v -count 1 -timeout 0 -spec.large | grep -e states -e '^[- ]*FAIL' -e '^ok'
	$(GO) test ./redisops/shards -run '^TestScriptsRefineSpecification$$' -count 1 -timeout 0 -spec.seed $(SEED) -spec.runs $(ROUNDS)

models: FOR = 10m
models: setup ## draw runs of all operations on timers and check what is delivered and what is limited (FOR=10m SEED=1)
	$(GO) test ./redisops/shards -run '^TestEveryPairOfOperations$$' -v -count 1 -timeout 0 -models.for $(FOR) -models.seed $(SEED) -models.all

script-bounds: setup ## measure for how long each script blocks Redis at its largest settings, and write the table of docs/scale.md
	$(GO) test ./redisops/internal/bounds -run '^TestEveryScriptIsBounded$$' -v -count 1 -timeout 0 -bounds.measure
	$(GO) test ./redisops/timers -run 'HoldsUpRedis' -v -count 1 -timeout 0 -slow.measure
	$(GO) test ./redisops/queue -run 'InFullQueues' -v -count 1 -timeout 0 -slow.measure

stock: setup ## run programs on an unmodified protoactor-go against nodes: bursts, silence, restarts (FOR=10m SEED=1)
	$(GO) test ./internal/stockpeer -run '^TestStockPeers$$' -v -count 1 -timeout 24h -stock.for $(FOR) -stock.seed $(SEED)

hostile: setup ## attack a served node in random mixes beside honest load (FOR=30m SEED=1)
	$(GO) test ./remote -run '^TestHostile$$' -v -count 1 -timeout 0 -hostile.for $(FOR) -hostile.seed $(SEED)

partitions: setup ## cut a master off from its replicas and peers while it goes on serving clients (SEED=1 ROUNDS=1 FOR=1h O=text|json|markdown)
	@$(MAKE) --no-print-directory faults ONLY=partition,partition-guarded,partition-replica,partition-cluster SEED=$(SEED) ROUNDS=$(ROUNDS) FOR=$(FOR) O=$(O)

faults-mutants: setup ## break one guard after another and see the fault scenarios detect it (MUTANTS=token SEED=1)
	@SEED=$(SEED) scripts/faults-mutants.sh $(MUTANTS)

lint: ## run the linters, check the format, the words and the tracked files
	@scripts/words.sh
	@scripts/files.sh
	@linter=$$($(TOOL) golangci-lint) && GOGC=200 "$$linter" run --allow-parallel-runners ./...

fmt: ## format the code
	@linter=$$($(TOOL) golangci-lint) && "$$linter" fmt ./...

fmt-check: ## fail when the code is not formatted
	@linter=$$($(TOOL) golangci-lint) && "$$linter" fmt --diff ./...

vet: ## run go vet
	$(GO) vet ./...

bench: ## run the benchmarks (BENCH=regexp COUNT=6); save the output for benchstat
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 60m ./...

bench-peers: ROUNDS = 5
bench-peers: setup ## measure Wakebell against its peers and its goals (ROUNDS=5 SCALE=1 ONLY=deliver,idle); an hour
	@if command -v npm >/dev/null; then for dir in bullmq graphile; do (cd bench/$$dir && npm install --no-audit --no-fund --silent) || exit 1; done; fi
	@cd bench && $(GO) run . peers --rounds $(ROUNDS) --scale $(SCALE) --only '$(ONLY)' --json results.json

bench-test: ## test the module that measures
	@cd bench && $(GO) vet ./... && $(GO) test -vet=off ./...

browser-test: ## test the dashboard in a real Chromium; installs what is missing
	@scripts/setup.sh redis-server chromium npm
	@cd dashboard/browser && npm install --no-audit --no-fund --silent && $(GO) vet ./... && $(GO) test -vet=off -timeout 9m ./...

screenshots: ## make the pictures of docs/dashboard
	@scripts/setup.sh redis-server chromium
	@mkdir -p docs/dashboard
	@cd dashboard/browser && $(GO) test . -run '^TestScreenshots$$' -count 1 -timeout 9m -args -screenshots $(CURDIR)/docs/dashboard

outbox-test: ## test the outbox on PostgreSQL, MariaDB and SQLite, and its example
	@scripts/setup.sh redis-server postgres mariadbd
	@cd outbox/sqltest && $(GO) vet ./... && $(GO) test -vet=off -timeout 5m ./...
	@cd examples/outbox && $(GO) vet ./... && $(GO) test -vet=off -timeout 5m ./...

outbox-bench: ## print how fast the outbox relays on PostgreSQL, MariaDB and SQLite while 90 % of 100,000 rows are refused
	@scripts/setup.sh redis-server postgres mariadbd
	@cd outbox/sqltest && $(GO) test -run '^$$' -bench Blocked -benchtime 1x -timeout 9m .

baseline: ## write the listings of what stays compatible (docs/compatibility.md); review the difference
	@scripts/setup.sh redis-server
	WAKEBELL_BASELINE=write $(GO) test -count 1 ./internal/baseline ./cmd/wakebell -run '^(TestGoAPI|TestMessages|TestKeys|TestJSONOfCommands|TestCommandsAndFlags)$$'

mixed-versions: ## run nodes and clients of this version beside those of an earlier one, with faults (SEED=1 ONLY=kill,drain BASE=commit)
	@scripts/setup.sh redis-server
	@SEED=$(SEED) ONLY='$(ONLY)' scripts/mixed-versions.sh $(BASE)

generate: ## regenerate the generated code
	@$(GO) generate ./...

generate-check: ## fail when the generated code is out of date
	@MAKE='$(MAKE)' scripts/generate-check.sh

check: fmt-check lint vet generate-check outbox-test deploy-test mixed-versions test ## all that a commit has to pass

fuzz: ## run every fuzz test in turn (FUZZTIME=60s each)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

build: ## build the commands into bin/
	$(GO) build -trimpath -o bin/ ./cmd/wakebell

release-check: ## build two releases, compare builds, install the deb and upgrade it under load (TIMERS=10000); a quarter of an hour
	@scripts/setup.sh redis-server lintian
	@TIMERS=$(TIMERS) scripts/release-check.sh

deploy-test: ## test the Kubernetes manifests, the Helm chart and the compose file of deploy/
	@cd deploy/check && $(GO) vet ./... && $(GO) test -vet=off ./...

site: ## build the documentation site into site/.vitepress/dist; fails for dead links (WAKEBELL_SITE_VERSION=v0.1)
	@scripts/setup.sh npm
	@cd site && npm install --no-save --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error && npm run --silent build

setup: ## install what the tests need
	@scripts/setup.sh redis-server prometheus cc python-client typescript-client

clean: ## remove what was built
	rm -rf bin dist .release .tools
