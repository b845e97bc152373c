#!/bin/sh
# Runs all checks of this package, with the exact versions of requirements.txt: style, types, tests, and the wheel as a user installs it.
# PYTHON is the interpreter, 3.11 or 3.12.
set -eu
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
bin=$root/target/python/check/bin

(
	cd "$root"
	[ -n "${NODEWISE_PROGRAMS:-}" ] || "${CARGO:-cargo}" build --locked --quiet -p nodewise-server -p nodewise-testbed --bins
	testbed/run.sh build
)
if ! cmp -s requirements.txt "$bin/../requirements.txt"; then
	"${PYTHON:-python3}" -m venv --clear "$bin/.."
	"$bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
	cp requirements.txt "$bin/.."
fi
export PYTHONPATH="$PWD/src"

"$bin/ruff" format --check --quiet .
"$bin/ruff" check --quiet .
"$bin/mypy"
"$bin/python" -m pytest --quiet

rm -rf "$root/target/python/dist"
"$bin/python" -m build --no-isolation --outdir "$root/target/python/dist" . >"$root/target/python/build.log"
"${PYTHON:-python3}" -m venv --clear "$root/target/python/user"
"$root/target/python/user/bin/pip" install --quiet --disable-pip-version-check -c requirements.txt \
	"nodewise[kube,otel] @ file://$(ls "$root"/target/python/dist/*.whl)"
unset PYTHONPATH
cd / && "$root/target/python/user/bin/python" -c 'import nodewise, nodewise.sync; print("installed:", nodewise.Reconciler, nodewise.v1.Plan().verdict)'
