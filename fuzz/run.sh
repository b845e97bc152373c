#!/usr/bin/env bash
# Fuzzes each of FUZZ_TARGETS for FUZZ_SECONDS, one after the other, and prints the most time and memory of an input. See fuzz/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=${FUZZ_TARGETS:-parse plan report file}
seconds=${FUZZ_SECONDS:-600}
cargo=${CARGO:-cargo}
target_dir=${CARGO_TARGET_DIR:-target}
host=$(rustc -vV | sed -n 's/^host: //p')

# The flags of cargo-fuzz that the stable compiler supports: count edges, and show comparisons to the fuzzer. `--target` keeps them
# from build scripts, which have no fuzzer.
coverage='--cfg fuzzing -Cpasses=sancov-module
  -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares'
programs=()
for target in $targets; do programs+=(--bin "fuzz-$target"); done
RUSTFLAGS=$(echo $coverage) $cargo build --locked -p nodewise-fuzz --features libfuzzer --profile fuzz --target "$host" "${programs[@]}"

# fuzz SECONDS NEW SEEDS...: fuzzes for SECONDS, writes new inputs to the folder NEW, and starts with the inputs in the folders SEEDS.
fuzz() {
  mkdir -p "$2"
  if ! "$target_dir/$host/fuzz/fuzz-$target" -max_total_time="$1" -timeout=60 -rss_limit_mb=4096 -max_len=1200000 \
      -print_final_stats=1 -artifact_prefix="$work/found/" "${@:2}" >> "$work/log" 2>&1; then
    grep -a -e 'panicked' -e 'may take' -e 'ERROR' -e 'Test unit written' "$work/log" || tail -n 20 "$work/log"
    exit 1
  fi
}

for target in $targets; do
  work=$target_dir/fuzzing/$target
  mkdir -p "$work/found"
  $cargo run --locked --quiet -p nodewise-fuzz --bin fuzz-large -- "$target" "$work/large"
  seeds=("fuzz/corpus/$target")
  if [ -d "fuzz/regressions/$target" ]; then seeds+=("fuzz/regressions/$target"); fi
  printf '\n==> fuzzing %s for %s s (log: %s)\n' "$target" "$seconds" "$work/log"
  : > "$work/log"
  # A tenth of the time is for inputs of a megabyte, each of which takes as long as a hundred small ones.
  fuzz "$((seconds / 10 + 1))" "$work/megabytes" "$work/large"
  fuzz "$((seconds - seconds / 10))" "$work/corpus" "${seeds[@]}"
  # Each part prints its costliest inputs. Show the last line of each.
  awk '/^COSTS/ { costs = $0 } /DONE/ { print costs; print }' "$work/log"
done
