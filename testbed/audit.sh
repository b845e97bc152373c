#!/bin/sh
# Checks everything that users get for known vulnerabilities: crates (RustSec), Go modules (vuln.go.dev, only code that is
# called) and Python packages (PyPI). Checks all of them, even if one has vulnerabilities.
set -u
cd "$(dirname "$0")/.."
root=$PWD
failed=

target/tools/bin/cargo-deny --workspace --locked check advisories || failed="$failed crates"

govulncheck=$(testbed/run.sh tool govulncheck)
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
