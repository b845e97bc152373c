# Thin on purpose: each target is one or two lines. `make test` is what CI runs.
CARGO ?= cargo
SECTION = @printf '\n==> %s\n'

.PHONY: demo test format lint proto unit e2e bench fuzz

demo:
	$(CARGO) run --release --bin nodewise -- demo

test: format lint proto unit e2e
	$(SECTION) 'all parts passed'

format:
	$(SECTION) 'formatting (cargo fmt)'
	$(CARGO) fmt --all --check

lint:
	$(SECTION) 'lints (clippy, warnings are errors)'
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

proto:
	$(SECTION) 'protocol (buf lint; builds buf the first time, about 2 minutes)'
	cd proto && "$$($(CARGO) run --locked --quiet -p nodewise-testbed -- tool buf)" lint

unit:
	$(SECTION) 'unit, property and gRPC tests (cargo test)'
	$(CARGO) test --workspace --exclude nodewise-testbed --exclude nodewise-e2e --locked

e2e:
	$(SECTION) 'end-to-end tests on a real control plane (builds it the first time, about 7 minutes)'
	$(CARGO) run --locked --quiet -p nodewise-testbed -- build
	$(CARGO) test -p nodewise-testbed -p nodewise-e2e --locked

bench:
	$(CARGO) bench --locked -p nodewise-planner && $(CARGO) bench --locked -p nodewise-server

fuzz:
	$(SECTION) 'fuzzing with libFuzzer (40 minutes, and some to build; FUZZ_SECONDS and FUZZ_TARGETS change that)'
	fuzz/run.sh
