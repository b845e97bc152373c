#!/bin/sh
# Looks for known vulnerabilities in all that users get: crates (RustSec), Go modules (vuln.go.dev, and only where the code is really
# called) and Python packages (PyPI). All are looked at, also when one has some.
set -u
cd "$(dirname "$0")/.."
root=$PWD
failed=

target/tools/bin/cargo-deny --workspace --locked check advisories || failed="$failed crates"

govulncheck=$("${CARGO:-cargo}" run --locked --quiet -p nodewise-testbed -- tool govulncheck)
(cd clients/go && "$govulncheck" ./...) || failed="$failed clients/go"
(cd testbed/upstream && "$govulncheck" ./...) || failed="$failed testbed/upstream"

audit=$root/target/tools/pip-audit
"${PYTHON:-python3}" -m venv "$audit" && "$audit/bin/pip" install --quiet --disable-pip-version-check pip-audit==2.10.1
for folder in clients/python deploy/images; do
	"$audit/bin/pip-audit" --strict --no-deps --disable-pip --requirement $folder/requirements.txt || failed="$failed $folder"
done

if [ -n "$failed" ]; then
	echo "audit: see above, of:$failed" >&2
	exit 1
fi
