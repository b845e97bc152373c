#!/bin/sh
# Runs nodewise-testbed with these arguments: the program in NODEWISE_PROGRAMS if that is set, as in `make test`, or else what Cargo builds.
set -eu
if [ -n "${NODEWISE_PROGRAMS:-}" ]; then
	exec "$NODEWISE_PROGRAMS/nodewise-testbed" "$@"
fi
exec "${CARGO:-cargo}" run --locked --quiet --manifest-path "$(dirname "$0")/Cargo.toml" -- "$@"
