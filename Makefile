# Thin on purpose: each target is one or two lines. `make test` is what CI runs.
CARGO ?= cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
SECTION = @printf '\n==> %s %s\n' "$$(date +%T)"

# Everything of the workspace is compiled with one set of features: that of all packages with their tests. For each other choice of packages
# Cargo would compile up to a hundred crates once more. So the tests of some packages are run by `$(call TESTS,packages)`, which builds all and
# runs these, and programs come from PROGRAMS. With the features of the product alone `make images-test` compiles them.
PROGRAMS = $(abspath $(TARGET))/debug
TESTS = $(CARGO) test --workspace --tests --locked --config 'target."cfg(all())".runner=["$(CURDIR)/testbed/only.sh","$(strip $1)"]'
TESTBED_TESTS = nodewise-testbed nodewise-conformance nodewise-e2e nodewise-bench nodewise-upstream-e2e
OTHER_TESTS = nodewise-compare nodewise-images

# Mutation tests; all their files are in target/. Random cases are few and always the same: so that tables catch mutants, and not chance.
MUTANTS = cargo-mutants --version 27.1.0
MUTANTS_ENV = TMPDIR=$(CURDIR)/target/mutants/trees PROPTEST_CASES=16 PROPTEST_RNG_SEED=1 CARGO_PROFILE_DEV_DEBUG=false \
	PATH="$(CURDIR)/target/tools/bin:$$PATH"
DENY = cargo-deny --version 0.20.2
# What a comparison with upstream has to reach, and how few clusters may be equal by a rule only.
KINDS = daemonset replicaset deployment
EQUAL = --kind $1 --coverage-at-least 90 --uncovered testbed/compare/uncovered/$1.yaml --by-rule-at-most $(BY_RULE_$1)
BY_RULE_daemonset = 0.5
BY_RULE_replicaset = 0.5
# Most of these have refused writes, or a rollback.
BY_RULE_deployment = 6

# The cases that the example controllers in Go and Python go through: all, if anything that they depend on has changed since BASE, or if
# that is not known; or else these. On BASE itself its last commit counts.
BASE ?= origin/main
CHANGED = $(shell base=$$(git merge-base $(BASE) HEAD 2>/dev/null) || { echo unknown; exit; }; \
	[ "$$base" != "$$(git rev-parse HEAD)" ] || base=HEAD~1; \
	{ git diff --name-only "$$base" -- clients proto testbed/conformance || echo unknown; \
	git ls-files --others --exclude-standard clients proto testbed/conformance; } 2>/dev/null | head -n 1)
EXAMPLE_CASES ?= $(if $(CHANGED),,create-one follow-nodes adopt-orphan roll-max failed-pod pod-name-taken service-restarts \
	buckets-by-digest late-watches kill-after-create-pod kill-after-delete-pod sigterm-at-work tls traces wrong-plan-template wrong-plan-uid \
	rs-create rs-adopt rs-scale-down rs-kill-after-create-pod rs-wrong-plan-pod deployment-create deployment-roll deployment-undo deployment-hpa \
	deployment-kill-after-scale deployment-takeover-mid deployment-wrong-plan-create)
# `make images-test` compiles for these.
ARCHITECTURES ?= amd64

# The parts of `make test`. Each takes all cores, so they run one after the other.
PARTS = format lint build supply proto unit go python dashboard upstream e2e conformance executors images-test

.PHONY: demo test test-all $(PARTS) programs kit-rust kit-go kit-python fuzz-upstream upstream-e2e images audit release skew bench fuzz mutants

demo:
	$(CARGO) run --release --bin nodewise -- demo

test: export NODEWISE_PROGRAMS = $(PROGRAMS)
test:
	$(SECTION) 'all parts, on two cores: about an hour with a warm target folder, up to an hour and a quarter in a fresh clone'
	MAKE='$(MAKE)' testbed/parts.sh $(PARTS)

# With what `make test` leaves out: all cases of the kit for the examples in Go and Python, images for arm64, and two versions together.
test-all:
	$(MAKE) test EXAMPLE_CASES= ARCHITECTURES='amd64 arm64'
	$(MAKE) skew

format:
	$(SECTION) 'formatting (cargo fmt)'
	$(CARGO) fmt --all --check

lint:
	$(SECTION) 'lints (clippy, warnings are errors)'
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

build:
	$(SECTION) 'all programs and tests, compiled once (in a fresh clone about 11 minutes)'
	$(CARGO) test --workspace --no-run --locked
	$(CARGO) build --workspace --bins --examples --locked

# What the parts below start. They find it in NODEWISE_PROGRAMS.
programs:
	$(CARGO) build --workspace --bins --examples --locked --quiet
go python dashboard upstream upstream-e2e e2e conformance executors images-test: programs
go python dashboard upstream upstream-e2e e2e skew conformance executors images-test: export NODEWISE_PROGRAMS = $(PROGRAMS)

proto:
	$(SECTION) 'protocol (buf lint, buf breaking; builds buf the first time, about 2 minutes)'
	buf="$$(testbed/run.sh tool buf)" && cd proto && "$$buf" lint && "$$buf" breaking --against released.json

unit:
	$(SECTION) 'unit, property and gRPC tests (cargo test)'
	$(call TESTS,not $(TESTBED_TESTS) $(OTHER_TESTS))
	$(CARGO) test --workspace --doc --locked

go:
	$(SECTION) 'the Go client: go vet, golangci-lint, tests (builds the linter the first time, about 5 minutes)'
	cd clients/go && go vet ./... && "$$(../../testbed/run.sh tool golangci-lint)" run ./...
	cd clients/go && NODEWISE_SERVER_BIN=$(PROGRAMS)/nodewise-server go test $$(go env CGO_ENABLED | sed 's/1/-race/;s/0//') ./...

python:
	$(SECTION) 'the Python client: ruff, mypy, tests, wheel (installs tools and the oldest dependencies the first time, about 3 minutes)'
	clients/python/check.sh

# SCREENSHOTS=docs/images also writes the pictures of docs/dashboard.md.
dashboard:
	$(SECTION) 'the page: types, fresh assets, every view in Chromium (two minutes; the first time it builds the control plane for about 10)'
	testbed/run.sh build
	cd dashboard && npm ci --ignore-scripts --silent && npx tsc --noEmit && node fresh.mjs
	SCREENSHOTS='$(if $(SCREENSHOTS),$(abspath $(SCREENSHOTS)))' node --test --test-concurrency=1 --test-reporter=spec dashboard/browser/*.test.mjs

upstream:
	$(SECTION) 'the same clusters through upstream (builds its controller the first time, up to 2 minutes)'
	cd testbed/upstream && go vet ./... && go test ./...
	$(call TESTS,nodewise-compare)
	$(foreach kind,$(KINDS),$(PROGRAMS)/nodewise-compare --cases 20000 --seed 1 --at-most 900 $(call EQUAL,$(kind)) &&) true

fuzz-upstream:
	$(SECTION) 'a million clusters of each kind through upstream (some hours on two cores)'
	$(foreach kind,$(KINDS),$(CARGO) run --release --locked -p nodewise-compare -- --cases 1000000 $(call EQUAL,$(kind)) &&) true

upstream-e2e:
	$(SECTION) "Kubernetes' own end-to-end tests of all three kinds, with either owner (eight minutes; the first time it builds for about 40)"
	$(PROGRAMS)/nodewise-upstream-e2e --logs $(TARGET)/upstream-e2e

e2e:
	$(SECTION) 'end-to-end tests on a real control plane (builds it the first time, about 10 minutes)'
	testbed/run.sh build
	$(call TESTS,$(TESTBED_TESTS))

# EARLIER is the first commit whose executor runs all three kinds. A release replaces it by its predecessor. `git` must have the history.
EARLIER ?= 2942b4cf4a80d1de19fd11600af4c74d0613e8bd
EARLIER_TARGET = $(abspath $(TARGET))/earlier
skew: programs
	$(SECTION) 'an earlier executor with this service, and the reverse (builds the earlier programs the first time, about 8 minutes)'
	testbed/run.sh build
	mkdir -p $(EARLIER_TARGET)/$(EARLIER) && git archive $(EARLIER) | tar -x -C $(EARLIER_TARGET)/$(EARLIER)
	cd $(EARLIER_TARGET)/$(EARLIER) && CARGO_TARGET_DIR=$(EARLIER_TARGET) $(CARGO) build --locked --bin nodewise-server --bin nodewise-executor
	NODEWISE_EARLIER_PROGRAMS=$(EARLIER_TARGET)/debug $(call TESTS,nodewise-e2e) -- --ignored skew::

conformance:
	$(SECTION) 'an executor held to the contract (EXECUTOR="command ..."; by default this one; CASES="..." for some; five minutes)'
	$(PROGRAMS)/nodewise-conformance $(CASES)

# The three side by side, each on a control plane of its own: a case mostly waits. The environment of the Python example is that of
# `make python`.
KIT = $(PROGRAMS)/nodewise-conformance --lanes 1
executors:
	@echo 'cases for Go and Python: $(if $(EXAMPLE_CASES),$(words $(EXAMPLE_CASES)): nothing that they depend on has changed,all: $(CHANGED))'
	$(SECTION) 'the example controllers in Rust, Go and Python held to the contract (five minutes; all cases a quarter of an hour)'
	cd clients/go && go build -o $(abspath $(TARGET))/go-controller ./examples/controller
	$(MAKE) --no-print-directory -j3 --output-sync=target kit-rust kit-go kit-python
kit-rust:
	$(KIT) --executor $(PROGRAMS)/examples/controller create roll-max adopt kill-after-create sigterm
kit-go:
	$(KIT) --executor $(abspath $(TARGET))/go-controller $(EXAMPLE_CASES)
kit-python:
	$(KIT) --executor 'env PYTHONPATH=clients/python/src target/python/check/bin/python clients/python/examples/controller.py' $(EXAMPLE_CASES)

images:
	$(SECTION) 'images for amd64 and arm64, started and read, in target/images (ten minutes the first time)'
	deploy/images/build.sh && deploy/images/sbom.sh
	IMAGES=$(CURDIR)/target/images $(CARGO) test -p nodewise-images --locked

images-test:
	$(SECTION) 'images, as they are tested: compiled fast instead of for speed (a minute; the first time five)'
	export PROFILE=dev CARGO_PROFILE_DEV_DEBUG=false CARGO_INCREMENTAL=0 OUT=$(TARGET)/test-images ARCHITECTURES='$(ARCHITECTURES)'; deploy/images/build.sh && deploy/images/sbom.sh
	IMAGES=$(abspath $(TARGET))/test-images ARCHITECTURES='$(ARCHITECTURES)' $(call TESTS,nodewise-images)

# The tag comes by the environment: as text of the recipe it could be a command.
release:
	$(SECTION) 'all files of a release, in target/release-files (TAG=v0.1.0)'
	deploy/release.sh "$$TAG"

supply:
	$(SECTION) 'licences and sources of dependencies, workflows (builds cargo-deny the first time, about 2 minutes)'
	$(CARGO) install $(DENY) --locked --debug --quiet --root target/tools
	target/tools/bin/cargo-deny --workspace --locked check --hide-inclusion-graph bans licenses sources
	"$$(testbed/run.sh tool actionlint)"
	! grep -n 'uses:' .github/workflows/* | grep -vE 'uses: \./|@[0-9a-f]{40} # v[0-9.]+$$'

audit: supply
	$(SECTION) 'known vulnerabilities of everything that is pinned (asks databases on the internet)'
	testbed/audit.sh

bench:
	$(SECTION) 'both sides measured, docs/benchmarks.md written (more than an hour; nothing else should run meanwhile)'
	$(CARGO) build --release --locked -p nodewise-server -p nodewise-executor -p nodewise-bench --bins
	$(CARGO) run --release --locked -p nodewise-bench

mutants:
	$(SECTION) 'mutation tests of the planner (builds cargo-mutants the first time; then three quarters of an hour)'
	$(CARGO) install $(MUTANTS) --locked --debug --quiet --root target/tools && mkdir -p target/mutants/trees
	env -u CARGO_TARGET_DIR $(MUTANTS_ENV) $(CARGO) mutants --jobs 2 --output target/mutants; case $$? in 0|2|3) ;; *) exit 1 ;; esac
	$(CARGO) test --locked --quiet -p nodewise-planner --test mutants -- --ignored --nocapture

fuzz:
	$(SECTION) 'fuzzing with libFuzzer (40 minutes, and some to build; FUZZ_SECONDS and FUZZ_TARGETS change that)'
	fuzz/run.sh
