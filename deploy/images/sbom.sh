#!/bin/sh
# Writes the components of each program, in CycloneDX, next to the images: nodewise-server.cdx.json and so on, in OUT.
# The programs for arm64 have the same crates as those for amd64, except one that detects features of amd64 processors.
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-target/images}

"${CARGO:-cargo}" install cargo-cyclonedx --version 0.5.9 --locked --debug --quiet --root target/tools
# cargo-cyclonedx writes its files next to each Cargo.toml of the workspace.
trap 'find . -maxdepth 3 -name "*_bin.cdx.json" -delete' EXIT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct || echo 0)} target/tools/bin/cargo-cyclonedx cyclonedx --quiet \
	--format json --spec-version 1.5 --describe binaries --no-build-deps --target x86_64-unknown-linux-musl
for program in server/nodewise-server executor/nodewise-executor cli/nodewise; do
	sed "s#file://$PWD/##g" "${program}_bin.cdx.json" >"$out/${program#*/}.cdx.json"
done
